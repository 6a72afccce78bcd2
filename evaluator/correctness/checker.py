"""Check a Candidate's correctness: all checks on each set of sizes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.correctness.cases import PreparedCases, prepare_cases
from evaluator.correctness.checks import CHECKS
from evaluator.correctness.compare_outputs import STAGE, Report
from evaluator.correctness.context import CheckContext
from evaluator.correctness.shape_contract import ShapeContract
from evaluator.errors import ChildFault, Rejection
from evaluator.inputs.sizes import Sizes
from evaluator.rejections import rejection
from evaluator.subject import Subject
from evaluator.types import Problem, Verdict


class Checker:
    """Checks a Candidate's child against a reference's. Raises Rejection with the Verdict.

    `candidate` is set before `check` and may be a different child for other sizes. `known` returns cases of other
    Candidates that this one has not seen, and `keep` takes new ones.
    """

    def __init__(
        self,
        problem: Problem,
        reference: Subject,
        generator: torch.Generator,
        first_call_s: float,
        known: Callable[[Sizes], PreparedCases | None] = lambda _: None,
        keep: Callable[[Sizes, PreparedCases | None], object] = lambda sizes, cases: None,
    ) -> None:
        self.problem, self.reference, self.generator = problem, reference, generator
        self._known, self._keep = known, keep
        self.first_call_s = first_call_s
        self.report = Report()
        self.candidate: Subject
        self._ready: dict[str, PreparedCases | Rejection | None] = {}
        self._shape_contract = ShapeContract()
        self._size_sequences: set[bool] = set()
        self._checked: set[str] = set()

    def prepare(self, sizes: Sizes) -> None:
        """Do the reference's part of `check` ahead of time. Raises nothing."""
        try:
            self._ready[sizes.label] = self._prepared(sizes)
        except Rejection as found:  # raised later: a Candidate that does not load is refused for that first
            self._ready[sizes.label] = found

    def _prepared(self, sizes: Sizes) -> PreparedCases | None:
        """Do the reference's part of `check`. Raises Rejection."""
        found = self._known(sizes)
        if found is None:
            first = not self.report.checked
            found = prepare_cases(self.problem, self.reference, sizes, self.generator, first=first)
            self._keep(sizes, found)
        return found

    def has_checked(self, sizes: Sizes) -> bool:
        return sizes.label in self._checked

    def check(self, sizes: Sizes, *, brief: bool = False) -> None:
        """Check one set of sizes, `brief` if other sizes follow. Skips varied sizes that the reference itself
        refuses."""
        self._checked.add(sizes.label)
        if sizes.label in self.reference.left_out and not sizes.adversarial:
            self.report.skipped.append(sizes.shown_label)
            return
        try:
            self._check(sizes, brief)
        except Rejection as found:
            raise _redacted(found, sizes) from found

    def _check(self, sizes: Sizes, brief: bool) -> None:
        ready = self._ready.pop(sizes.label) if sizes.label in self._ready else self._prepared(sizes)
        if isinstance(ready, Rejection):
            raise ready
        if ready is None or not all(
            self._shape_contract.learn_or_check(sizes, case.expected) for case in ready.cases[:1]
        ):
            self.report.skipped += [] if sizes.layout else [sizes.shown_label]
            return
        self.report.skipped += ready.skipped
        if not ready.oracle.in_float64:
            self.report.oracle = ready.oracle.precision
        try:
            self._run_checks(self._context(sizes, ready, brief))
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, STAGE, f"checking {sizes.label}") from fault
        label = sizes.shown_label
        self.report.checked[label] = self.report.checked.get(label, 0) + len(ready.cases)

    def _context(self, sizes: Sizes, ready: PreparedCases, brief: bool) -> CheckContext:
        return CheckContext(
            problem=self.problem,
            candidate=self.candidate,
            reference=self.reference,
            oracle=ready.oracle,
            sizes=sizes,
            tree=ready.tree,
            cases=ready.cases,
            report=self.report,
            generator=self.generator,
            first_call_s=self.first_call_s,
            shape_contract=self._shape_contract,
            size_sequences=self._size_sequences,
            foreseen=ready.foreseen,
            brief=brief,
        )

    def _run_checks(self, context: CheckContext) -> None:
        context.construct_module()
        for check in CHECKS:
            check.run(context)
        if context.is_shown_workload and context.cases:
            limit_s = context.limit_s(len(context.cases))
            self.report.operations |= self.candidate.observe(context.tree, context.cases[0].tensors, timeout_s=limit_s)


def _redacted(found: Rejection, sizes: Sizes) -> Rejection:
    """Reduce a failure on held-out data to its class."""
    if not sizes.hidden or found.verdict is Verdict.INVALID_REFERENCE:
        return found
    evidence = {"check": found.evidence.get("check", ""), "held_out": True}
    return Rejection(found.verdict, found.stage, f"fails on a held-out workload ({found.verdict})", **evidence)
