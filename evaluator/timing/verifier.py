"""Verify every output of timed calls against the oracle, for the inputs that the chain made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from evaluator.oracle.oracle import Oracle
from evaluator.rejections import rejection
from evaluator.subject import Result
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE, Answer, ContenderRound, RoundInputs
from evaluator.types import Verdict, Workload


class _Comparison:
    """The comparison of one round. By call it has the inputs (`calls`), the oracle's `answers`, the faults `found`, and
    the `outputs`, followed by the inputs that the Problem changes."""

    def __init__(
        self,
        run: ContenderRound,
        calls: Mapping[int, values.Tensors],
        answers: Mapping[int, Answer],
        mutated: Sequence[int],
    ) -> None:
        done = run.done
        self.run, self.calls, self.answers = run, calls, dict(answers)
        changed = {call: [done.inputs[call][index] for index in mutated] if done.inputs else [] for call in calls}
        self.outputs = {call: [*done.outputs[call], *changed[call]] for call in calls}
        self.found: dict[int, Finding] = {}

    @property
    def plain(self) -> dict[int, Result]:
        """The oracle's results of calls that have no expectation yet, by call."""
        pairs = self.answers.items()
        return {call: one.result for call, one in pairs if one.expected is None and one.result is not None}

    def doubtful(self, like: Expected) -> list[int]:
        """Return those of `plain` whose outputs are not clearly within the limits of `like`."""
        plain = self.plain
        results, outputs = [tensors for _, tensors in plain.values()], [self.outputs[call] for call in plain]
        return [call for call, right in zip(plain, clearly_right(like, results, outputs), strict=True) if not right]

    def compare(self) -> None:
        """Compare the calls that have an expectation."""
        for call, answer in self.answers.items():
            if answer.expected is not None:
                self._note(call, answer.expected)

    def refused(self) -> list[tuple[int, values.ValueSet]]:
        """Return the calls on adversarial values with outputs outside their limits."""
        kinds = self.run.inputs.value_sets
        return [(call, kind) for call in self.found if (kind := kinds[call]) is not None]

    def expect(self, call: int, wanted: Expected) -> None:
        """Compare a call with other limits."""
        self.answers[call] = Answer(expected=wanted)
        self._note(call, wanted)

    def _note(self, call: int, wanted: Expected) -> None:
        found = _finding(wanted, self.outputs[call])
        if found is None:
            self.found.pop(call, None)
        else:
            self.found[call] = found


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

    def _derived(self, run: ContenderRound) -> dict[int, values.Tensors]:
        """Return the inputs of the compared calls, as the chain made them. Raise Rejection or ComparatorFailed."""
        compared, calls, outputs = run.compared, run.inputs.calls, run.done.outputs
        if compared and len(outputs) <= compared[-1]:
            raise EvaluatorError(f"call {compared[-1]} is compared, but {len(outputs)} were read")
        later = [call for call in compared if call]
        before = [outputs[call - 1] for call in later]
        try:
            first, *changed = chain.derive(
                [calls[0], *(calls[call] for call in later)], before, run.inputs.link, run.done.plan.replays
            )
        except LayoutError as fault:
            raise self.attribute(run.contender, fault) from fault
        return {**({0: first} if 0 in compared else {}), **dict(zip(later, changed, strict=True))}

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
        for call, found in comparison.found.items():
            expected = comparison.answers[call].expected
            remaining: Finding | None = found
            if expected is not None and not self._stateful:
                remaining = self._recheck(comparison, call, expected)
            if remaining is not None:
                if not contender.suspect:
                    raise ComparatorFailed(contender.name, f"on {self.workload.name}: {remaining.reason}")
                raise self._wrong(call, inputs.value_sets[call], remaining)
        if contender.compared_in_full:
            self.kinds |= inputs.kinds
        if done.inputs and comparison.calls:
            self._check_inputs(comparison.calls, done.inputs)
            for call in comparison.calls:
                check_no_alias(self._typical, done.replies[call], self.label)

    def _answers(self, some: Sequence[tuple[RoundInputs, Mapping[int, values.Tensors]]]) -> list[dict[int, Answer]]:
        """Return the answers to several rounds' calls, with the strictest limits on adversarial values. All contenders
        share the first call's inputs, in rounds of as many replays, and those of other calls where nothing is
        chained."""
        if self._stateful:
            made = [self._oracle.targets(self._tree, [*calls.values()], self._typical) for _, calls in some]
            return [
                {call: Answer(expected=one) for call, one in zip(calls, expected, strict=True)}
                for (_, calls), expected in zip(some, made, strict=True)
            ]
        found: dict[tuple[int, int], Answer] = {}
        wanted: dict[tuple[int, int], tuple[values.Tensors, values.ValueSet | None]] = {}
        for index, (inputs, calls) in enumerate(some):
            for call, tensors in calls.items():
                if not inputs.shared(call):
                    wanted[index, call] = tensors, inputs.value_sets[call]
                elif call not in inputs.answers:
                    wanted.setdefault((id(inputs), call), (tensors, inputs.value_sets[call]))
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
            inputs.answers |= {call: found[id(inputs), call] for call in calls if (id(inputs), call) in found}
        return [
            {call: inputs.answers[call] if inputs.shared(call) else found[index, call] for call in calls}
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

    def _check_inputs(self, before: Mapping[int, values.Tensors], after: Sequence[Sequence[torch.Tensor]]) -> None:
        """Check that calls left their inputs as they were, except those that the Problem changes. Raise Rejection."""
        for index in range(len(after[0])):
            if index in self._mutated:
                continue
            pairs = [(tensors[index], after[call][index]) for call, tensors in before.items()]
            for call, same, pair in zip(before, equal(*zip(*pairs, strict=True)), pairs, strict=True):
                if not same and not values.same_bits(*pair):
                    where = {} if self.workload.held_out else {"call": call, "input": index}
                    changed = "changed its input, or read a different one than it was given"
                    raise Rejection(
                        Verdict.INCORRECT_VALUES,
                        STAGE,
                        f"a timed call on {self.label} {changed}",
                        check="input_changed",
                        **where,
                    )

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
        """The Workload's name, unless it is held out."""
        return "a held-out workload" if self.workload.held_out else self.workload.name


def _finding(expected: Expected, outputs: Sequence[torch.Tensor]) -> Finding | None:
    """Return the fault of the first wrong output; None where outputs are right or nothing can be told."""
    if not expected.informative:
        return None
    every = zip(expected.targets, expected.limits, outputs, strict=False)
    return next(filter(None, (target.compare(actual, limit) for target, limit, actual in every)), None)
