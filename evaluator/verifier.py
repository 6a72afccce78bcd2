"""Every output of timed calls, compared with what is right for the inputs that the chain made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator import values
from evaluator.child import chain
from evaluator.child.spec import LayoutError
from evaluator.contender import ComparatorFailed, Contender
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.expected import Expected
from evaluator.fresh import STAGE, Fresh, Run, to_read
from evaluator.oracle import Oracle
from evaluator.returned import check_fresh
from evaluator.second_look import second_look
from evaluator.subject import rejection
from evaluator.target import Finding
from evaluator.types import Verdict, Workload


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
        for run, calls, wanted in zip(runs, derived, expected, strict=True):
            self._compare(run, calls, wanted)

    def _derived(self, run: Run) -> list[values.Tensors]:
        """The inputs of the calls that are compared, as the chain made them. Raises Rejection, ComparatorFailed."""
        count = to_read(run.contender, len(run.fresh.calls))
        try:
            return chain.derive(run.fresh.calls[:count], run.done.outputs, run.fresh.link, run.done.plan.replays)
        except LayoutError as fault:
            raise self.blame(run.contender, fault) from fault

    def _compare(self, run: Run, calls: Sequence[values.Tensors], expected: Sequence[Expected]) -> None:
        contender, fresh, done = run.contender, run.fresh, run.done
        for call, outputs in enumerate(done.outputs[: len(calls)]):
            wanted = expected[call]
            if not wanted.informative:
                continue
            changed = [done.inputs[call][index] for index in self._mutated] if done.inputs else []
            found = _finding(wanted, [*outputs, *changed])
            if found is not None and not self._stateful:
                usual = fresh.odd[call] is None
                found = self._looked_at_closely(calls[call], wanted, [*outputs, *changed], usual=usual)
            if found is not None:
                if not contender.suspect:
                    raise ComparatorFailed(contender.name, f"on {self.workload.name}: {found.reason}")
                raise self._wrong(call, fresh.odd[call], found)
        if contender.compared_in_full:
            self.kinds |= fresh.kinds
        for call, tensors in enumerate(done.inputs):
            self._check_inputs(call, calls[call], tensors)
            check_fresh(self._like, done.replies[call], self.shown)

    def _expected(self, some: Sequence[tuple[Fresh, Sequence[values.Tensors]]]) -> list[list[Expected]]:
        """What is right for the calls of several rounds. The first call's inputs are everybody's, in rounds of as many
        replays; so are the others' where nothing is chained."""
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
        odd = {key: (tensors, kind.rounding) for key, (tensors, kind) in wanted.items() if kind is not None}
        exact, usual = self._oracle.expect_both(
            self._tree, [t for t, _ in odd.values()], [how for _, how in odd.values()], list(plain.values()), self._like
        )
        found |= zip(plain, usual, strict=True)
        found |= {key: one.loosened(odd[key][1].slack) for key, one in zip(odd, exact, strict=True)}
        for fresh, calls in some:
            fresh.expected |= {
                place: found[id(fresh), place] for place in range(len(calls)) if (id(fresh), place) in found
            }
        return [
            [fresh.expected[place] if fresh.shares(place) else found[index, place] for place in range(len(calls))]
            for index, (fresh, calls) in enumerate(some)
        ]

    def _looked_at_closely(
        self, inputs: values.Tensors, expected: Expected, outputs: Sequence[torch.Tensor], *, usual: bool
    ) -> Finding | None:
        """What is wrong with outputs all the same. The limits of usual calls are those of a few others: where values
        cancel, one in some hundreds is worse. And what NaN among the inputs has no influence on may be a number."""
        if usual:
            (exact,) = self._oracle.expect(self._tree, [inputs])
            expected = exact.loosened(values.Rounding().slack).widest([expected])
            if not expected.informative:
                return None
        return _finding(second_look(self._oracle, self._tree, inputs, expected, outputs), outputs)

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
    """What is wrong with the first output that is."""
    every = zip(expected.targets, expected.limits, outputs, strict=False)
    return next(filter(None, (target.judge(actual, limit) for target, limit, actual in every)), None)
