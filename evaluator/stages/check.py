"""The correctness stage: start a Candidate's child, prepare cases, check every set of sizes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from evaluator.correctness.cases import CaseCache, PreparedCases
from evaluator.correctness.checker import Checker
from evaluator.correctness.compare_outputs import Report
from evaluator.device_session import DeviceSession
from evaluator.errors import Rejection
from evaluator.inputs.sizes import Sizes, sizes_to_check
from evaluator.oracle.dimensions import find_dimensions
from evaluator.stages.candidate_children import CandidateChildren
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.types import Stage


class CheckStage:
    """Checks Candidates on one device. `cases` are shared by Candidates of a Problem."""

    def __init__(self, session: DeviceSession, children: CandidateChildren, cases: CaseCache) -> None:
        self.session, self.children, self.cases = session, children, cases

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
                    checker.prepare(first, lambda: self._first_cases(trial, checker, first))
            except BaseException:
                with suppress(Rejection):
                    started.result().close()
                raise
        return started.result()

    def _first_cases(self, trial: Trial, checker: Checker, first: Sizes) -> PreparedCases | None:
        """Return another Candidate's cases that this one has not seen, or new ones. Raises Rejection."""
        found = self.cases.take(trial.problem, trial.candidate, first, checker.reference, trial.generator)
        if found is None:
            found = checker.prepared(first)
            self.cases.put(trial.problem, trial.candidate, first, found)
        return found

    def check(self, trial: Trial, subject: Subject, checker: Checker, stage: Stage) -> Report:
        """Check every set of sizes. Raises Rejection.

        Held-out data goes to a separate child that ends afterwards, so it cannot pass it on. Between two sets of sizes
        other judges may time.
        """
        with self.session.shared():
            dimensions = find_dimensions(trial.problem, trial.workloads, checker.reference, trial.generator)
        every = list(sizes_to_check(trial.problem, trial.workloads, dimensions))
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

    def _check_sizes(self, every: list[Sizes], subject: Subject, checker: Checker) -> None:
        checker.candidate = subject
        self.session.freeze_while_waiting(subject)
        for sizes in every:
            with self.session.shared():
                checker.check(sizes)
