"""The correctness stage: start a Candidate's child, prepare cases, check every set of sizes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.correctness.cases import CaseCache, PreparedCases, prepare_cases
from evaluator.correctness.checker import Checker
from evaluator.correctness.compare_outputs import Report
from evaluator.device_session import DeviceSession
from evaluator.errors import EvaluatorError, Rejection
from evaluator.inputs.sizes import Sizes, sizes_to_check
from evaluator.oracle.dimensions import find_dimensions
from evaluator.stages.candidate_children import CandidateChildren
from evaluator.stages.trial import Trial, secret_generator
from evaluator.subject import Subject
from evaluator.types import Problem, Stage

_MOST_PASSED = 256


@dataclass(slots=True)
class _Passed:
    """A Candidate that passed every check, and the least that it gains on any Workload, once it has been timed."""

    report: Report
    least_gain: float = 0.0


class CheckStage:
    """Checks Candidates on one device. `cases` are shared by Candidates of a Problem, `second_cases`, drawn anew, by
    those of its Candidates that are confirmed."""

    def __init__(
        self, session: DeviceSession, children: CandidateChildren, cases: CaseCache, second_cases: CaseCache
    ) -> None:
        self.session, self.children, self.cases, self.second_cases = session, children, cases, second_cases
        self._left_out: set[tuple[CaseCache, str, str]] = set()  # cases that cannot be kept
        self._passed: dict[tuple[str, str], _Passed] = {}  # Candidates that passed every check here, newest last

    def forget_cases(self) -> None:
        """Forget all cases, since the memory is needed or a lost device has lost it."""
        self.cases.clear()
        self.second_cases.clear()

    def checker(self, trial: Trial, reference: Subject, *, second: bool = False) -> Checker:
        """Return a Checker that shares its cases with those of other Candidates. The `second` check of a Candidate has
        other draws than the first."""
        cases = self.second_cases if second else self.cases

        def known(sizes: Sizes) -> PreparedCases | None:
            return cases.take(trial.problem, trial.candidate, sizes, reference, trial.generator)

        def keep(sizes: Sizes, found: PreparedCases | None) -> None:
            cases.put(trial.problem, trial.candidate, sizes, found)

        return Checker(trial.problem, reference, trial.generator, trial.first_call_s, known, keep)

    def prepare_ahead(self, problem: Problem) -> bool:
        """Prepare one more set of cases before a Candidate needs it. Return false if there is none to prepare.

        Those of a first check come first; a second check is of Workloads alone. Raises nothing: a failure occurs again
        where it is reported.
        """
        every = list(sizes_to_check(problem, problem.workloads_for(self.session.backend.kind)))
        wanted = [(self.cases, index, sizes) for index, sizes in enumerate(every)]
        wanted += [(self.second_cases, index, sizes) for index, sizes in enumerate(every) if sizes.adversarial]
        for cases, index, sizes in wanted:
            key = problem.hash, sizes.label
            if sizes.hidden or key in cases or (cases, *key) in self._left_out:
                continue
            self._left_out.add((cases, *key))
            with (
                suppress(EvaluatorError, LayoutError, torch.OutOfMemoryError),
                self.session.references.lend(problem) as reference,
                self.session.shared(),
            ):
                if sizes.label not in reference.left_out or sizes.adversarial:
                    found = prepare_cases(problem, reference, sizes, secret_generator(), first=index == 0)
                    if cases.put(problem, None, sizes, found):
                        self._left_out.discard((cases, *key))
            return True
        return False

    def start_and_prepare(self, trial: Trial, checker: Checker) -> Subject:
        """Start the Candidate's child, which is mostly waiting, while the reference prepares the first cases.

        Raises Rejection.
        """
        first = next(sizes_to_check(trial.problem, trial.workloads))
        with ThreadPoolExecutor(1) as starter:
            started = starter.submit(self.children.start, trial.candidate, Stage.BUILD)
            try:
                with self.session.shared():
                    # Before the cases, whose Model stays in the reference's child.
                    find_dimensions(trial.problem, trial.workloads, checker.reference, trial.generator)
                    checker.prepare(first)
            except BaseException:
                with suppress(Rejection):
                    started.result().close()
                raise
        return started.result()

    def check_first(self, trial: Trial, subject: Subject, checker: Checker) -> None:
        """Check the first set of sizes alone, with most of the adversarial values, and without calls of one module with
        several sizes where more Workloads follow. Raises Rejection."""
        first = next(sizes_to_check(trial.problem, trial.workloads))
        self._check_sizes([first], subject, checker, brief=len(trial.shown) > 1)

    def note_passed(self, trial: Trial, report: Report) -> None:
        """Remember that a Candidate passed every check, for its confirmation."""
        self._passed[trial.problem.hash, trial.candidate.hash] = _Passed(report)
        while len(self._passed) > _MOST_PASSED:
            del self._passed[next(iter(self._passed))]

    def note_gain(self, trial: Trial, least: float) -> None:
        """Remember for a Candidate that passed a lower bound of its speedups, which holds on every Workload."""
        self._passed[trial.problem.hash, trial.candidate.hash].least_gain = least

    def least_gain(self, trial: Trial) -> float:
        """Return the bound that `note_gain` remembers for the Candidate, or 0."""
        known = self._passed.get((trial.problem.hash, trial.candidate.hash))
        return known.least_gain if known is not None else 0.0

    def has_passed(self, trial: Trial) -> bool:
        """Return True if this judge has passed the Candidate on every set of sizes."""
        return (trial.problem.hash, trial.candidate.hash) in self._passed

    def check_again(self, trial: Trial, subject: Subject, checker: Checker, stage: Stage) -> Report:
        """Check with new seeds: the Workloads alone where this judge has passed the Candidate on every set of sizes.

        Return the report on all sizes. Raises Rejection.
        """
        known = self._passed.get((trial.problem.hash, trial.candidate.hash))
        report = self.check(trial, subject, checker, stage, varied=known is None)
        if known is not None:
            report.checked = {**known.report.checked, **report.checked}
            report.skipped = list(dict.fromkeys([*known.report.skipped, *report.skipped]))
        return report

    def check(self, trial: Trial, subject: Subject, checker: Checker, stage: Stage, *, varied: bool = True) -> Report:
        """Check every set of sizes that was not checked yet, or those of Workloads alone. Raises Rejection.

        Held-out data goes to a separate child that ends afterwards, so it cannot pass it on. Between two sets of sizes
        other judges may time.
        """
        with self.session.shared():
            dimensions = find_dimensions(trial.problem, trial.workloads, checker.reference, trial.generator)
        every = [
            sizes
            for sizes in sizes_to_check(trial.problem, trial.workloads, dimensions)
            if not checker.has_checked(sizes) and (varied or sizes.adversarial)
        ]
        self._check_sizes([sizes for sizes in every if not sizes.hidden], subject, checker)
        if trial.adapter.keeps_first_calls:
            self.children.store(trial.candidate, subject, stage)
        hidden = [sizes for sizes in every if sizes.hidden]
        if hidden:
            other = self.children.start(trial.candidate, stage)
            try:
                self._check_sizes(hidden, other, checker)
            finally:
                self.session.children.end(other)
        return checker.report

    def _check_sizes(self, every: list[Sizes], subject: Subject, checker: Checker, *, brief: bool = False) -> None:
        checker.candidate = subject
        self.session.freeze_while_waiting(subject)
        for sizes in every:
            with self.session.shared():
                checker.check(sizes, brief=brief)
