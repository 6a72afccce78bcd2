"""Is it our loop that makes the timed calls?

Native code can reach the harness of its own process, put a loop of its own in the place of ours, and save what the
Python around each call takes: that of the harness, which a call of nothing needs, too, and that of its own `forward`. A
kernel of some microseconds then seems twice as fast as it is for anybody who calls it. No output is wrong, and when
calls come one at a time such a loop is as quick. But a call that goes through our loop is in the interpreter for at
least as long as a call of nothing is, so its process is looked at from outside, at random moments of rounds like the
timed ones: who is there for less than half as long has not been called by us. What a round of one call needs, which is
asking and answering, is not counted.

Whoever spends that time in the interpreter all the same has no more to gain than what his own `forward` spends there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict

_FEWEST_SAMPLES, _MOST_SAMPLES, _LONGEST_S = 30, 400, 2.0  # looks at a child, and how long they may take
_LEAST_SHARE = 0.5  # of the time that a call of nothing is in the interpreter
_SHORT_ROUNDS = 4  # of one call, the shortest of which counts
_CHANCE_OF_ERROR = 1e-6


@dataclass(slots=True)
class _Samples:
    """How long a child ran in some rounds, how often it was looked at meanwhile, and how often it was in the
    interpreter then."""

    rounds: int = 0
    ran_us: float = 0.0
    samples: int = 0
    interpreted: int = 0

    def add(self, done: Round) -> None:
        self.rounds += 1
        self.ran_us += done.ran_us
        self.samples += done.diagnostics.get("looks", 0)
        self.interpreted += done.diagnostics.get("interpreted", 0)

    @property
    def share(self) -> float:
        return self.interpreted / max(1, self.samples)

    @property
    def round_us(self) -> float:
        return self.ran_us / max(1, self.rounds)

    def least_share(self, null: _Samples, short_us: float) -> float:
        """The share of its time that this child has to be in the interpreter for, by what a null child is; of whose
        time a round of one call took some. 0 where that is not known: the kernel may not say how long a process ran."""
        if not self.round_us or null.samples < _FEWEST_SAMPLES:
            return 0.0
        calls_us = max(0.0, null.round_us - short_us)
        return min(1.0, null.share * (short_us + _LEAST_SHARE * calls_us) / self.round_us)

    def chance(self, share: float) -> float:
        """Of being seen in the interpreter as rarely, or more rarely, if it is there for that share of its time."""
        if self.share >= share:
            return 1.0
        rest = 1.0 - share
        terms = (
            math.comb(self.samples, k) * share**k * rest ** (self.samples - k) for k in range(self.interpreted + 1)
        )
        return math.fsum(terms)


def check(rounds: Rounds, suspects: Sequence[Contender], plan: RoundPlan) -> None:
    """Look at suspects in rounds like `plan`. Raises Rejection, ComparatorFailed."""
    if not suspects:
        return
    null, once = _Samples(), replace(plan, calls=1)
    short_us = min(rounds.run_null(rounds.repeated_inputs(1), once).ran_us for _ in range(_SHORT_ROUNDS))
    for contender in suspects:
        found, least, end = _Samples(), 0.0, time.monotonic() + _LONGEST_S
        while found.samples < _MOST_SAMPLES and time.monotonic() < end:
            null.add(rounds.run_null(rounds.repeated_inputs(plan.calls), plan, watch=True))
            found.add(rounds.run(contender, rounds.new_inputs(plan.calls), plan, watch=True))
            least = found.least_share(null, short_us)
            if found.samples >= _FEWEST_SAMPLES and (
                found.share >= least > 0 or found.chance(least) < _CHANCE_OF_ERROR
            ):
                break
        if found.chance(least) < _CHANCE_OF_ERROR:
            raise Rejection(
                Verdict.REWARD_HACK,
                STAGE,
                "a loop of its own makes the timed calls: it is hardly ever in the interpreter, where a call of nothing"
                f" spends {null.share * null.round_us / plan.executions:.1f} us",
                check="own_loop",
                looks=found.samples,
                in_interpreter=found.interpreted,
                least_share=round(least, 3),
            )
