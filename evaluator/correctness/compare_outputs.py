"""Compare a Candidate's outputs: expected values, equal outputs for equal inputs, unmodified inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from evaluator.comparison.claims import tensor_claims
from evaluator.comparison.layout_checks import check_no_alias, check_no_reuse, check_reply
from evaluator.correctness import single_inputs
from evaluator.correctness.cases import RECIPE_CASES, Case
from evaluator.correctness.reference_faults import reference_must_work
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle.nan_and_ties import allow_alternatives
from evaluator.oracle.oracle import Oracle
from evaluator.subject import RunReply, Subject
from evaluator.types import Stage, Verdict

STAGE = Stage.CORRECTNESS
_NAN_IS_FREE = {single_inputs.MEETING_INFINITIES, *(kind.name for kind in values.ADVERSARIAL if kind.nan_is_free)}
"""Cases in which a kernel may have anything where the reference has NaN."""


@dataclass(slots=True)
class Report:
    """The evidence of a check: calls per set of sizes, and the worst error as a share of its limit.

    `worst_absolute` and `worst_relative` (to the size of an element's row) are of the recipe's own draws alone.
    """

    checked: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    worst_share: float = 0.0
    worst_absolute: float = 0.0
    worst_relative: float = 0.0
    oracle: str = "float64"
    operations: dict[str, int] = field(default_factory=dict)  # of torch, in one call: a claim

    def evidence(self) -> dict[str, Any]:
        return {
            "checked_calls": self.checked,
            "worst_error_share": round(self.worst_share, 3),
            "worst_absolute_error": self.worst_absolute,
            "worst_relative_error": self.worst_relative,
            "oracle": self.oracle,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares the outputs of one child of a Candidate, `bitwise` if the Problem asks for it. Raises Rejection."""

    candidate: Subject
    report: Report
    bitwise: bool

    def compare(
        self, oracle: Oracle, tree: Any, cases: Sequence[Case], reply: RunReply, sizes: Sizes
    ) -> list[list[torch.Tensor]]:
        """Check the calls of these cases and return the outputs of each, followed by the inputs that it changes."""
        mutated = oracle.mutated(tree)
        for case, item in zip(cases, reply.replies, strict=True):
            check_reply(case.expected, item)
        check_no_reuse(reply.replies)
        outputs = self.candidate.fetch_calls([tensor_claims(item) for item in reply.replies])
        after = reply.grant.read_back()
        outputs = [[*own, *(tensors[i] for i in mutated)] for own, tensors in zip(outputs, after, strict=True)]
        # A failure on the recipe's own inputs is the most helpful one, so these are compared first.
        plainest_first = sorted(zip(cases, outputs, strict=True), key=lambda one: one[0].group)
        for _, alike in itertools.groupby(plainest_first, key=lambda one: one[0].group):
            self._compare_equal_inputs(oracle, tree, list(alike), sizes)
        self._check_repeats(cases, outputs, sizes)
        for case, item in zip(cases, reply.replies, strict=True):
            check_no_alias(case.expected, item, sizes.label, workload=sizes.label)
        self._check_inputs(cases, after, sizes, mutated)
        return outputs

    def _compare_equal_inputs(
        self, oracle: Oracle, tree: Any, alike: Sequence[tuple[Case, Sequence[torch.Tensor]]], sizes: Sizes
    ) -> None:
        """Compare the outputs of equal inputs. Raises Rejection."""
        with reference_must_work(sizes):
            findings = [self.confirmed_finding(oracle, tree, case, tensors) for case, tensors in alike]
        for (case, tensors), finding in zip(alike, findings, strict=True):
            if finding is None:
                continue
            passed, why = None in findings, uninitialised_note(tensors)
            verdict = Verdict.NONDETERMINISTIC if passed and not why else Verdict.INCORRECT_VALUES
            also = why or (" (another call with equal inputs was right)" if passed else "")
            reason = f"{finding['reason']}{also}, on {sizes.label}, inputs: {case.name}"
            raise Rejection(verdict, STAGE, reason, workload=sizes.label, inputs=case.name, **finding["evidence"])

    def confirmed_finding(
        self, oracle: Oracle, tree: Any, case: Case, outputs: Sequence[torch.Tensor]
    ) -> dict[str, Any] | None:
        """Return the finding of `_finding` if closer analysis of the outputs confirms it."""
        self.candidate.yield_device()
        found = self._finding(case, outputs)
        if found is None:
            return None
        if case.borrowed_limits:
            (exact,) = oracle.expect(tree, [case.tensors])
            case = replace(case, expected=exact.with_widest_limits([case.expected]))
            found = self._finding(case, outputs)
        found = self._finding_at_second_look(oracle, tree, case, outputs, found)
        if found is None or not (case.nan_spreads or case.name in _NAN_IS_FREE):
            return found
        if case.nan_spreads:
            outputs = [t.fill_nan(actual) for t, actual in zip(case.expected.targets, outputs, strict=True)]
        if case.name in _NAN_IS_FREE:
            outputs = [t.copy_reference_nan(actual) for t, actual in zip(case.expected.targets, outputs, strict=True)]
        return self._finding_at_second_look(oracle, tree, case, outputs, self._finding(case, outputs))

    def _finding_at_second_look(
        self,
        oracle: Oracle,
        tree: Any,
        case: Case,
        outputs: Sequence[torch.Tensor],
        found: dict[str, Any] | None,
    ) -> dict[str, Any] | None:
        """Compare outputs with `found` wrong again, with the limits of the second look."""
        if found is None:
            return None
        tiny = case.name in values.NEARLY_ZERO
        expected = allow_alternatives(oracle, tree, case.tensors, case.expected, outputs, any_tie=tiny)
        return found if expected is case.expected else self._finding(replace(case, expected=expected), outputs)

    def _finding(self, case: Case, outputs: Sequence[torch.Tensor]) -> dict[str, Any] | None:
        expected = case.expected
        if not case.comparable:
            return None
        for index, (target, limit, actual) in enumerate(zip(expected.targets, expected.limits, outputs, strict=True)):
            # Errors of finite values decide alone, and are told anyway. Most outputs are right, so they come first.
            errors = None if target.integral or not target.finite else target.errors(actual)
            right = errors is not None and limit.allows(*errors)
            found = None if right else target.compare(actual, limit)
            if found is not None:
                which = f"{expected.label(index)}: " if len(expected.targets) > 1 else ""
                evidence = {"check": found.check, "output": index, **found.detail}
                return {"reason": f"{which}{found.reason}", "evidence": evidence}
            if not target.integral:
                norm, element = errors or target.errors(actual)
                share = max(norm / limit.norm, element / limit.element)
                if math.isfinite(share):  # else both overflow
                    self.report.worst_share = max(self.report.worst_share, share)
                if case.name in RECIPE_CASES and math.isfinite(element):
                    self.report.worst_relative = max(self.report.worst_relative, element)
                    self.report.worst_absolute = max(self.report.worst_absolute, target.absolute_error(actual))
        return None

    def _check_repeats(self, cases: Sequence[Case], outputs: Sequence[Sequence[torch.Tensor]], sizes: Sizes) -> None:
        """Compare the outputs of equal inputs bit by bit, if the Problem asks for it."""
        if not self.bitwise:
            return
        first: dict[int, Sequence[torch.Tensor]] = {}
        for case, tensors in zip(cases, outputs, strict=True):
            before = first.setdefault(case.group, tensors)
            if any(not values.same_bits(a, b) for a, b in zip(before, tensors, strict=True)):
                raise Rejection(
                    Verdict.NONDETERMINISTIC,
                    STAGE,
                    f"equal inputs gave different bits on {sizes.label}",
                    check="bitwise",
                )

    def _check_inputs(
        self, cases: Sequence[Case], after: Sequence[Sequence[torch.Tensor]], sizes: Sizes, mutated: Sequence[int]
    ) -> None:
        for case, tensors in zip(cases, after, strict=True):
            for index, (before, now) in enumerate(zip(case.tensors, tensors, strict=True)):
                if index not in mutated and not values.same_bits(before, now):
                    raise Rejection(
                        Verdict.INCORRECT_VALUES,
                        STAGE,
                        f"forward changes its input {index}, on {sizes.label}",
                        check="input_changed",
                        input=index,
                    )


def uninitialised_note(outputs: Sequence[torch.Tensor]) -> str:
    """Return a note for outputs that hold uninitialised memory, else ""."""
    return " (not written when the call returned)" if any(map(values.holds_uninitialised_memory, outputs)) else ""
