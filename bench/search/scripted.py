"""Script models that differ in ability and price, on the recorded landscapes.

A model is `landscape.Proposer` with its own shares of worthless replies, and a price. The assumptions are simple, and
no source states them exactly. Their range comes from public reports:

- Kernels that are right: of the twelve models of KernelBench-Hard (2026) one solved seven of seven problems, one
  none, and one six at a fraction of the best one's cost.
- Edits that can be read: in aider's leaderboard of code editing the best give a search/replace block that applies in
  96 to 100 % of cases, weaker ones in fewer, and some are only asked for whole files.
- Prices per million tokens, in and out, are those of the classes on sale, an order of magnitude apart.
- Tokens of a prompt and a reply are those of the answers in tests/workers/recorded; thoughts are not counted.

A failure is a recorded one: a slip of the requested design, with its recorded verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.search.landscape import BROKEN, MENDED, Kernel, Landscape, Proposer
from evaluator.types import Verdict
from evolution.types import Operator

FIRST_INPUT, INPUT = 2100, 3900
"""Tokens of a prompt without a parent, and with one."""
WHOLE_OUTPUT, DIFF_OUTPUT = 1600, 650
TOKENS_PER_S = 60.0
"""Seconds until a reply comes, from all of them."""
PASSED_S, REJECTED_S = 1.9, 0.4
"""Seconds of an H200 that judging a kernel takes (`python -m bench.rate`); what does not build takes none."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """One endpoint. Shares are of its replies; prices are dollars per million tokens.

    `malformed`: nothing can be read from it. `undiffable`: likewise, of its search/replace edits. `unrelated`: a first
    draft, for any prompt. `broken`: a recorded slip (of the readable ones). `mended`: of repairs, the right ones.
    """

    name: str
    usd_in: float
    usd_out: float
    malformed: float
    unrelated: float
    broken: float
    mended: float
    undiffable: float = 0.0

    def usd(self, operator: Operator) -> float:
        return (input_tokens(operator) * self.usd_in + output_tokens(operator) * self.usd_out) / 1e6

    def reply(self, proposer: Proposer, parents: list[Kernel], operator: Operator) -> Kernel | None:
        """Return its edit of the parents, or None if the reply cannot be read.

        `proposer` is its own (`proposer_of`).
        """
        rng = proposer.rng
        if rng.random() < max(self.malformed, self.undiffable if operator is Operator.DIFF else 0.0):
            return None
        if not parents or rng.random() < self.unrelated:
            return proposer.propose(None)
        return proposer.propose(*parents, repair=operator is Operator.REPAIR)


def input_tokens(operator: Operator) -> int:
    return FIRST_INPUT if operator is Operator.CREATE else INPUT


def output_tokens(operator: Operator) -> int:
    return DIFF_OUTPUT if operator is Operator.DIFF else WHOLE_OUTPUT


def device_s(kernel: Kernel) -> float:
    """Return the device seconds of one judgement."""
    if kernel.verdict == Verdict.BUILD_ERROR:
        return 0.0
    return PASSED_S if kernel.passed else REJECTED_S


STRONG = Model(name="strong", usd_in=3.0, usd_out=15.0, malformed=0.02, unrelated=0.0, broken=BROKEN, mended=MENDED)
NEAR = Model(name="near", usd_in=0.3, usd_out=1.2, malformed=0.05, unrelated=0.05, broken=0.4, mended=0.4)
WEAK = Model(name="weak", usd_in=0.1, usd_out=0.3, malformed=0.2, unrelated=0.3, broken=0.7, mended=0.1)
DRAFTER = Model(name="drafter", usd_in=0.3, usd_out=1.2, malformed=0.02, unrelated=1.0, broken=0.2, mended=0.0)
CLUMSY = replace(NEAR, name="clumsy", undiffable=0.8)


def priced(model: Model, like: Model) -> Model:
    """Return the model at another's price."""
    return replace(model, usd_in=like.usd_in, usd_out=like.usd_out)


def named(model: Model, name: str) -> Model:
    """Return the same model at another endpoint."""
    return replace(model, name=name)


MIXTURES: Mapping[str, tuple[Model, ...]] = {
    "the strong one is dear": (STRONG, NEAR, WEAK),
    "all at one price": (priced(STRONG, NEAR), NEAR, priced(WEAK, NEAR)),
    "half of them are weak": (STRONG, NEAR, WEAK, named(WEAK, "weak-2")),
    "dear or weak": (STRONG, WEAK),
    "one cannot write diffs": (NEAR, CLUMSY),
    "one ignores what it is shown": (NEAR, DRAFTER),
    "two alike": (NEAR, named(NEAR, "near-2")),
}


def proposer_of(model: Model, land: Landscape, like: Proposer) -> Proposer:
    """Return a proposer with the model's failures, that draws from the same generator."""
    return Proposer(land, like.rng, broken=model.broken, mended=model.mended)
