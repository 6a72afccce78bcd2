"""Verify every output of timed calls against the oracle, for the inputs that the chain made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.expected import Expected
from evaluator.comparison.findings import Finding
from evaluator.comparison.layout_checks import check_no_alias
from evaluator.comparison.together import clearly_right, equal
from evaluator.errors import ChildFault, ComparatorFailed, EvaluatorError, Rejection
from evaluator.inputs import values
from evaluator.oracle.nan_and_ties import allow_alternatives
from evaluator.oracle.oracle import Oracle, Result
from evaluator.rejections import rejection
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE, Answer, ContenderRound, RoundInputs, compared_calls
from evaluator.types import Verdict, Workload


class _Comparison:
    """A round's outputs, and the inputs that the Problem changes, with the oracle's answers and what was `found`."""

    def __init__(
        self, run: ContenderRound, calls: Sequence[values.Tensors], answers: Sequence[Answer], mutated: Sequence[int]
    ) -> None:
        done = run.done
        self.run, self.calls, self.answers = run, calls, list(answers)
        changed = [[inputs[index] for index in mutated] for inputs in done.inputs] or [[]] * len(calls)
        self.outputs = [[*own, *also] for own, also in zip(done.outputs[: len(calls)], changed, strict=False)]
        self.found: list[Finding | None] = [None] * len(self.outputs)

    @property
    def plain(self) -> dict[int, Result]:
        """The oracle's results of calls that have no expectation yet, by call."""
        pairs = enumerate(self.answers[: len(self.outputs)])
        return {call: one.result for call, one in pairs if one.expected is None and one.result is not None}

    def doubtful(self, like: Expected) -> list[int]:
        """Return those of `plain` whose outputs are not clearly within the limits of `like`."""
        plain = self.plain
        results, outputs = [tensors for _, tensors in plain.values()], [self.outputs[call] for call in plain]
        return [call for call, right in zip(plain, clearly_right(like, results, outputs), strict=True) if not right]

    def compare(self) -> None:
        """Compare the calls that have an expectation."""
        self.found = [
            None if answer.expected is None else _finding(answer.expected, some)
            for answer, some in zip(self.answers, self.outputs, strict=False)
        ]

    def refused(self) -> list[tuple[int, values.ValueSet]]:
        """Return the calls on adversarial values with outputs outside their limits."""
        pairs = enumerate(zip(self.run.inputs.value_sets, self.found, strict=False))
        return [(call, kind) for call, (kind, found) in pairs if kind is not None and found is not None]

    def expect(self, call: int, wanted: Expected) -> None:
        """Compare a call with other limits."""
        self.answers[call], self.found[call] = Answer(expected=wanted), _finding(wanted, self.outputs[call])


class Verifier:
    """Verifies rounds of one Workload. `typical` has the limits of usual calls. `mutated` are the inputs that the
    Problem changes. A `stateful` module's calls depend on those before."""

    def __init__(
        self,
        workload: Workload,
        oracle: Oracle,
        tree: Any,
        typical: Expected,
        mutated: Sequence[int],
        *,
        stateful: bool,
    ) -> None:
        self.workload, self._oracle, self._tree, self._typical = workload, oracle, tree, typical
        self._mutated, self._stateful = mutated, stateful
        self.kinds: set[str] = set()  # adversarial values on which outputs were compared

    def verify(self, *runs: ContenderRound) -> None:
        """Verify rounds; several at once need fewer runs of the reference. Raise Rejection or ComparatorFailed."""
        derived = [self._derived(run) for run in runs]
        answers = self._answers([(run.inputs, calls) for run, calls in zip(runs, derived, strict=True)])
        comparisons = [_Comparison(*three, self._mutated) for three in zip(runs, derived, answers, strict=True)]
        self._expect_where_doubtful(comparisons)
        for comparison in comparisons:
            comparison.compare()
        if not self._stateful:
            self._widen(comparisons)
        for comparison in comparisons:
            self._compare(comparison)

    def _derived(self, run: ContenderRound) -> list[values.Tensors]:
        """Return the inputs of the compared calls, as the chain made them. Raise Rejection or ComparatorFailed."""
        count = compared_calls(run.contender, len(run.inputs.calls))
        if len(run.done.outputs) < count:
            raise EvaluatorError(f"{count} calls are compared, but {len(run.done.outputs)} were read")
        try:
            return chain.derive(run.inputs.calls[:count], run.done.outputs, run.inputs.link, run.done.plan.replays)
        except LayoutError as fault:
            raise self.attribute(run.contender, fault) from fault

    def _expect_where_doubtful(self, comparisons: Sequence[_Comparison]) -> None:
        """Make the expectation of each call that is to be compared by itself, in one run of the reference."""
        comparable = not self._oracle.has_vanishing_outputs
        doubtful = {
            id(comparison.answers[call]): (comparison.answers[call], comparison.calls[call])
            for comparison in comparisons
            for call in (comparison.doubtful(self._typical) if comparable else comparison.plain)
        }
        answers = [answer for answer, _ in doubtful.values()]
        results = [answer.result for answer in answers if answer.result is not None]
        calls = [tensors for _, tensors in doubtful.values()]
        made = self._oracle.with_limits_of(self._tree, self._typical, results, calls)
        for answer, expected in zip(answers, made, strict=True):
            answer.expected = expected

    def _widen(self, comparisons: Sequence[_Comparison]) -> None:
        """Give outputs on adversarial values the limits of their own inputs where the strictest limits refuse them. Few
        are, and this takes more runs of the reference."""
        refused = [(comparison, call, kind) for comparison in comparisons for call, kind in comparison.refused()]
        if not refused:
            return
        calls, how = (
            [comparison.calls[call] for comparison, call, _ in refused],
            [kind.rounding for *_, kind in refused],
        )
        for (comparison, call, kind), exact in zip(refused, self._oracle.expect(self._tree, calls, how), strict=True):
            comparison.expect(call, exact.with_slack(kind.rounding.slack))

    def _compare(self, comparison: _Comparison) -> None:
        contender, inputs, done = comparison.run.contender, comparison.run.inputs, comparison.run.done
        for call, found in enumerate(comparison.found):
            expected = comparison.answers[call].expected
            if found is not None and expected is not None and not self._stateful:
                found = self._recheck(comparison, call, expected)
            if found is not None:
                if not contender.suspect:
                    raise ComparatorFailed(contender.name, f"on {self.workload.name}: {found.reason}")
                raise self._wrong(call, inputs.value_sets[call], found)
        if contender.compared_in_full:
            self.kinds |= inputs.kinds
        self._check_inputs(comparison.calls, done.inputs)
        for reply in done.replies[: len(done.inputs)]:
            check_no_alias(self._typical, reply, self.label)

    def _answers(self, some: Sequence[tuple[RoundInputs, Sequence[values.Tensors]]]) -> list[list[Answer]]:
        """Return the answers to several rounds' calls, with the strictest limits on adversarial values. All contenders
        share the first call's inputs, in rounds of as many replays, and those of other calls where nothing is
        chained."""
        if self._stateful:
            made = [self._oracle.targets(self._tree, calls, self._typical) for _, calls in some]
            return [[Answer(expected=one) for one in expected] for expected in made]
        found: dict[tuple[int, int], Answer] = {}
        wanted: dict[tuple[int, int], tuple[values.Tensors, values.ValueSet | None]] = {}
        for index, (inputs, calls) in enumerate(some):
            for place, tensors in enumerate(calls):
                if not inputs.shared(place):
                    wanted[index, place] = tensors, inputs.value_sets[place]
                elif place not in inputs.answers:
                    wanted.setdefault((id(inputs), place), (tensors, inputs.value_sets[place]))
        plain = {key: tensors for key, (tensors, odd) in wanted.items() if odd is None}
        odd = {key: (tensors, kind.rounding.slack) for key, (tensors, kind) in wanted.items() if kind is not None}
        narrowest, usual = self._oracle.expect_strictly(
            self._tree, [tensors for tensors, _ in odd.values()], list(plain.values())
        )
        found |= {key: Answer(result=one) for key, one in zip(plain, usual, strict=True)}
        found |= {
            key: Answer(expected=one.with_slack(slack))
            for (key, (_, slack)), one in zip(odd.items(), narrowest, strict=True)
        }
        for inputs, calls in some:
            inputs.answers |= {
                place: found[id(inputs), place] for place in range(len(calls)) if (id(inputs), place) in found
            }
        return [
            [inputs.answers[place] if inputs.shared(place) else found[index, place] for place in range(len(calls))]
            for index, (inputs, calls) in enumerate(some)
        ]

    def _recheck(self, comparison: _Comparison, call: int, expected: Expected) -> Finding | None:
        """Return the remaining fault of a call's outputs after a closer look. Limits of usual calls come from a few
        others: where values cancel, one in some hundreds is worse. And an output that NaN in the inputs does not
        influence may be a number."""
        inputs, outputs = comparison.calls[call], comparison.outputs[call]
        if comparison.run.inputs.value_sets[call] is None:
            (exact,) = self._oracle.expect(self._tree, [inputs])
            expected = exact.with_slack(values.Rounding().slack).with_widest_limits([expected])
            if not expected.informative:
                return None
        return _finding(allow_alternatives(self._oracle, self._tree, inputs, expected, outputs), outputs)

    def _check_inputs(self, before: Sequence[values.Tensors], after: Sequence[Sequence[torch.Tensor]]) -> None:
        """Check that calls left their inputs as they were, except those that the Problem changes. Raise Rejection."""
        if not after:
            return
        for index in range(len(before[0])):
            if index in self._mutated:
                continue
            pairs = [(mine[index], theirs[index]) for mine, theirs in zip(before, after, strict=False)]
            for call, same in enumerate(equal(*zip(*pairs, strict=True))):
                if not same and not values.same_bits(*pairs[call]):
                    where = {} if self.workload.held_out else {"call": call, "input": index}
                    reason = (
                        f"a timed call on {self.label} changed its input, or read a different one than it was given"
                    )
                    raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="input_changed", **where)

    def _wrong(self, call: int, kind: values.ValueSet | None, found: Finding) -> Rejection:
        held = {} if kind is None else {"inputs": kind.name}
        evidence = {} if self.workload.held_out else {"call": call, **held, **found.detail}
        among = "" if kind is None else f", inputs: {kind.name}"
        detail = "" if self.workload.held_out else f": {found.reason}{among}"
        return Rejection(
            Verdict.INCORRECT_VALUES,
            STAGE,
            f"a timed call on {self.label} gave a wrong output{detail}",
            check="timed_values",
            **evidence,
        )

    def attribute(self, contender: Contender, fault: ChildFault | LayoutError | Rejection) -> EvaluatorError:
        """Return the error that reports a fault of a contender's child."""
        if contender.name in ("candidate", "again"):
            if isinstance(fault, Rejection):
                return fault
            return rejection(fault, STAGE, f"timing {self.label}")
        return ComparatorFailed(contender.name, f"on {self.workload.name}: {fault}")

    @property
    def label(self) -> str:
        """The Workload's name where it may be told."""
        return "a held-out workload" if self.workload.held_out else self.workload.name


def _finding(expected: Expected, outputs: Sequence[torch.Tensor]) -> Finding | None:
    """Return the fault of the first wrong output; None where outputs are right or nothing can be told."""
    if not expected.informative:
        return None
    every = zip(expected.targets, expected.limits, outputs, strict=False)
    return next(filter(None, (target.compare(actual, limit) for target, limit, actual in every)), None)
