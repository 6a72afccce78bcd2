"""Every output of timed calls, compared with what is right for the inputs that the chain made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.expected import Expected
from evaluator.comparison.findings import Finding
from evaluator.comparison.layout_checks import check_no_alias
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.inputs import values
from evaluator.oracle.nan_and_ties import allow_alternatives
from evaluator.oracle.oracle import Oracle
from evaluator.rejections import rejection
from evaluator.timing.contender import ComparatorFailed, Contender
from evaluator.timing.runs import STAGE, Fresh, Run, to_read
from evaluator.types import Verdict, Workload


class _Look:
    """A round's outputs, with those inputs that were to be changed, beside what is right for its calls."""

    def __init__(
        self, run: Run, calls: Sequence[values.Tensors], expected: Sequence[Expected], mutated: Sequence[int]
    ) -> None:
        done = run.done
        self.run, self.calls, self.expected = run, calls, list(expected)
        changed = [[inputs[index] for index in mutated] for inputs in done.inputs] or [[]] * len(calls)
        self.outputs = [[*own, *also] for own, also in zip(done.outputs[: len(calls)], changed, strict=False)]
        self.found = [_finding(one, some) for one, some in zip(expected, self.outputs, strict=False)]

    def doubted(self) -> list[tuple[int, values.ValueSet]]:
        """The calls on adversarial values whose outputs are not allowed."""
        pairs = enumerate(zip(self.run.fresh.odd, self.found, strict=False))
        return [(call, kind) for call, (kind, found) in pairs if kind is not None and found is not None]

    def expect(self, call: int, wanted: Expected) -> None:
        """Have other limits for a call."""
        self.expected[call], self.found[call] = wanted, _finding(wanted, self.outputs[call])


class Verifier:
    """Verifies rounds of one Workload. `like` has the limits of usual calls; `mutated` are the inputs that the Problem
    changes; a `stateful` module's calls depend on those before."""

    def __init__(
        self, workload: Workload, oracle: Oracle, tree: Any, like: Expected, mutated: Sequence[int], *, stateful: bool
    ) -> None:
        self.workload, self._oracle, self._tree, self._like = workload, oracle, tree, like
        self._mutated, self._stateful = mutated, stateful
        self.kinds: set[str] = set()  # of adversarial values on which outputs were compared

    def verify(self, *runs: Run) -> None:
        """Several at once take fewer runs of the reference than one by one. Raises Rejection, ComparatorFailed."""
        derived = [self._derived(run) for run in runs]
        expected = self._expected([(run.fresh, calls) for run, calls in zip(runs, derived, strict=True)])
        looks = [_Look(*three, self._mutated) for three in zip(runs, derived, expected, strict=True)]
        if not self._stateful:
            self._widen(looks)
        for look in looks:
            self._compare(look)

    def _derived(self, run: Run) -> list[values.Tensors]:
        """The inputs of the calls that are compared, as the chain made them. Raises Rejection, ComparatorFailed."""
        count = to_read(run.contender, len(run.fresh.calls))
        try:
            return chain.derive(run.fresh.calls[:count], run.done.outputs, run.fresh.link, run.done.plan.replays)
        except LayoutError as fault:
            raise self.blame(run.contender, fault) from fault

    def _widen(self, looks: Sequence[_Look]) -> None:
        """Give outputs on adversarial values that the strictest limits refuse, which few are, the limits of their own
        inputs: they take some runs of the reference more."""
        doubted = [(look, call, kind) for look in looks for call, kind in look.doubted()]
        if not doubted:
            return
        calls, how = [look.calls[call] for look, call, _ in doubted], [kind.rounding for *_, kind in doubted]
        for (look, call, kind), exact in zip(doubted, self._oracle.expect(self._tree, calls, how), strict=True):
            look.expect(call, exact.with_slack(kind.rounding.slack))

    def _compare(self, look: _Look) -> None:
        contender, fresh, done = look.run.contender, look.run.fresh, look.run.done
        for call, found in enumerate(look.found):
            if found is not None and not self._stateful:
                found = self._looked_at_closely(look, call)
            if found is not None:
                if not contender.suspect:
                    raise ComparatorFailed(contender.name, f"on {self.workload.name}: {found.reason}")
                raise self._wrong(call, fresh.odd[call], found)
        if contender.compared_in_full:
            self.kinds |= fresh.kinds
        for call, tensors in enumerate(done.inputs):
            self._check_inputs(call, look.calls[call], tensors)
            check_no_alias(self._like, done.replies[call], self.shown)

    def _expected(self, some: Sequence[tuple[Fresh, Sequence[values.Tensors]]]) -> list[list[Expected]]:
        """What is right for the calls of several rounds, with the strictest limits on adversarial values. The first
        call's inputs are everybody's, in rounds of as many replays; so are the others' where nothing is chained."""
        if self._stateful:
            return [self._oracle.targets(self._tree, calls, self._like) for _, calls in some]
        found: dict[tuple[int, int], Expected] = {}
        wanted: dict[tuple[int, int], tuple[values.Tensors, values.ValueSet | None]] = {}
        for index, (fresh, calls) in enumerate(some):
            for place, tensors in enumerate(calls):
                if not fresh.shares(place):
                    wanted[index, place] = tensors, fresh.odd[place]
                elif place not in fresh.expected:
                    wanted.setdefault((id(fresh), place), (tensors, fresh.odd[place]))
        plain = {key: tensors for key, (tensors, odd) in wanted.items() if odd is None}
        odd = {key: (tensors, kind.rounding.slack) for key, (tensors, kind) in wanted.items() if kind is not None}
        narrowest, usual = self._oracle.expect_strictly(
            self._tree, [tensors for tensors, _ in odd.values()], list(plain.values()), self._like
        )
        found |= zip(plain, usual, strict=True)
        found |= {key: one.with_slack(slack) for (key, (_, slack)), one in zip(odd.items(), narrowest, strict=True)}
        for fresh, calls in some:
            fresh.expected |= {
                place: found[id(fresh), place] for place in range(len(calls)) if (id(fresh), place) in found
            }
        return [
            [fresh.expected[place] if fresh.shares(place) else found[index, place] for place in range(len(calls))]
            for index, (fresh, calls) in enumerate(some)
        ]

    def _looked_at_closely(self, look: _Look, call: int) -> Finding | None:
        """What is wrong with a call's outputs all the same. The limits of usual calls are those of a few others: where
        values cancel, one in some hundreds is worse. And what NaN among the inputs has no influence on may be a number.
        """
        inputs, expected, outputs = look.calls[call], look.expected[call], look.outputs[call]
        if look.run.fresh.odd[call] is None:
            (exact,) = self._oracle.expect(self._tree, [inputs])
            expected = exact.with_slack(values.Rounding().slack).with_widest_limits([expected])
            if not expected.informative:
                return None
        return _finding(allow_alternatives(self._oracle, self._tree, inputs, expected, outputs), outputs)

    def _check_inputs(self, call: int, before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> None:
        for index, (mine, theirs) in enumerate(zip(before, after, strict=True)):
            if index not in self._mutated and not values.same_bits(mine, theirs):
                where = {} if self.workload.held_out else {"call": call, "input": index}
                reason = (
                    f"a timed call on {self.shown} changed its input, or worked on another than the one it was given"
                )
                raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="input_changed", **where)

    def _wrong(self, call: int, kind: values.ValueSet | None, found: Finding) -> Rejection:
        held = {} if kind is None else {"inputs": kind.name}
        evidence = {} if self.workload.held_out else {"call": call, **held, **found.detail}
        among = "" if kind is None else f", inputs: {kind.name}"
        shown = "" if self.workload.held_out else f": {found.reason}{among}"
        return Rejection(
            Verdict.INCORRECT_VALUES,
            STAGE,
            f"a timed call on {self.shown} gave a wrong output{shown}",
            check="timed_values",
            **evidence,
        )

    def blame(self, contender: Contender, fault: ChildFault | LayoutError | Rejection) -> EvaluatorError:
        """What a fault of a contender's child is told as."""
        if contender.name in ("candidate", "again"):
            if isinstance(fault, Rejection):
                return fault
            return rejection(fault, STAGE, f"timing {self.shown}")
        return ComparatorFailed(contender.name, f"on {self.workload.name}: {fault}")

    @property
    def shown(self) -> str:
        """The Workload's name where it may be told."""
        return "a held-out workload" if self.workload.held_out else self.workload.name


def _finding(expected: Expected, outputs: Sequence[torch.Tensor]) -> Finding | None:
    """What is wrong with the first output that is; None where nothing can be told."""
    if not expected.informative:
        return None
    every = zip(expected.targets, expected.limits, outputs, strict=False)
    return next(filter(None, (target.compare(actual, limit) for target, limit, actual in every)), None)
