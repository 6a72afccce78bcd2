"""The judge on one device: screen, build, check and time a Candidate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.correctness.cases import CaseCache
from evaluator.correctness.checker import Checker
from evaluator.device_session import DeviceSession
from evaluator.devices.base import DeviceBackend
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.sandbox import symbols
from evaluator.sandbox.build_cache import BuildCache
from evaluator.screening import launched_kernels, libraries
from evaluator.screening.screen import Screened, screen
from evaluator.stages import memory_shortage, outcomes
from evaluator.stages.candidate_children import CandidateChildren, compiled_kernels
from evaluator.stages.check import CheckStage
from evaluator.stages.outcomes import Origin
from evaluator.stages.promotion import unchecked_in_words
from evaluator.stages.time_candidate import Times, look, prepare_comparators, time_candidate
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.timing.protocol import STANDARD, TimingProtocol
from evaluator.tools.sanitizer import ToolHistory
from evaluator.types import BaselineReport, Candidate, DeviceKind, Environment, Evaluation, Problem, Stage, Verdict

Done = TypeVar("Done")
Tell = Callable[..., None]
_CASE_SHARE = 1 / 12  # of a GPU's memory: for each CaseCache
_HOST_SHARE, _MOST_HOST_BYTES = 1 / 32, 1 << 30  # the same of a machine's memory, on a CPU
_FREE_SHARE = 1 / 2  # of a GPU's memory: cases are kept while that much is free


def silent(**note: object) -> None:
    """Tell nobody."""


class Judge:
    """Judges on one device, one request at a time. `close` ends every child."""

    def __init__(
        self, backend: DeviceBackend, session: DeviceSession | None = None, *, protocol: TimingProtocol = STANDARD
    ) -> None:
        torch.set_num_threads(1)
        self.backend = backend
        self.session = session or DeviceSession(backend)
        self.device = backend.describe()
        self.protocol = protocol
        self._versions = backend.environment()
        self.lost = self.suspicious = False
        self.compiles_ahead = False  # Baselines compile during admission, since a search comes next
        self._begun_with = ""  # the hash of the Problem whose Candidate was right last
        self.expected: Problem | None = None  # Candidates of it are likely to come next
        self.tell: Tell = silent  # told what the judge is doing, for people who wait
        self.session.on_wait = lambda: self.tell(stage="wait")
        self.children = CandidateChildren(self.session, BuildCache.from_environment(self._versions))
        self.check_stage = CheckStage(self.session, self.children, self._case_cache(), self._case_cache())
        self.tool_history = ToolHistory()
        self.patience = memory_shortage.Patience()

    def _case_cache(self) -> CaseCache:
        """Return a cache of this device's share of memory."""
        memory_bytes, backend = self.device.facts.get("memory_bytes"), self.backend
        if not memory_bytes:
            return CaseCache(min(_MOST_HOST_BYTES, int(_host_bytes() * _HOST_SHARE)))
        free_bytes = memory_bytes * _FREE_SHARE
        return CaseCache(int(memory_bytes * _CASE_SHARE), lambda: (backend.free_bytes() or 0) > free_bytes)

    def close(self) -> None:
        self.session.close()
        self.backend.close()

    def isolation(self) -> tuple[str, ...]:
        """Return the limits of isolation that this machine cannot enforce."""
        self.session.pools.plain()
        return self.session.pools.isolation

    @property
    def environment(self) -> Environment:
        return replace(self._versions, protocol=self.protocol.hash)

    @property
    def origin(self) -> Origin:
        return Origin(self.device, self.environment, self.session.pools.isolation)

    def warm(self, *, builds: bool = False) -> None:
        """Begin to prepare what the first requests would wait for: builds, if it only `builds`, or all others."""
        with suppress(EvaluatorError):  # it is reported when it happens again in use
            if builds:
                self.session.warm_builds()
            elif self.backend.kind is DeviceKind.CUDA:
                self.session.warm()
            else:
                self.session.warm_samples()

    def use_spare_time(self) -> bool:
        """Prepare one more thing for requests to come. Return false if there is nothing left to prepare."""
        return self.expected is not None and self.check_stage.prepare_ahead(self.expected)

    # ------------------------------------------------------------ judge

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        baseline: BaselineReport | None = None,
        *,
        quick: bool = False,
        best: Mapping[str, float] = MappingProxyType({}),
    ) -> Evaluation:
        """Screen, build, check and time one Candidate. Never raises for a fault of the Candidate.

        `baseline` chooses the comparator of each Workload; without it all Baselines of the device are timed, too. With
        `quick`, a Candidate that is clearly slower than that comparator is spared most checks, and its reason says so;
        also one that is clearly slower than the `best` so far: speedups over that comparator by Workload.
        """
        trial = Trial(
            problem=problem,
            candidate=candidate,
            kind=self.backend.kind,
            baseline=baseline,
            quick=quick and baseline is not None,
            best=best,
        )

        def work() -> Evaluation:
            self.backend.trim()
            self.session.children.prestarted.begin()
            with self._first_verdict_first(trial):
                return self.with_retries(problem, lambda: self._judge(trial))

        try:
            return self.evaluate(trial, work)
        except outcomes.TORCH_ERRORS as error:
            return self.internal_error(trial, outcomes.refused_by_torch(error))

    @contextmanager
    def _first_verdict_first(self, trial: Trial) -> Iterator[None]:
        """Hold back Baselines that compile on the judge's only core until a Problem's first right Candidate has its
        times: it is not timed against these. What waited to begin then begins. A confirmation waits for them.
        """
        waits = trial.baseline is not None and bool(trial.baseline.pending) and trial.problem.hash != self._begun_with
        with self.session.comparators.held_back() if waits else nullcontext():
            yield
        self._begun_with = trial.problem.hash
        self.session.comparators.go_on()

    def _judge(self, trial: Trial) -> Evaluation:
        with trial.clock.during(Stage.SCREEN):
            screened = _screen_for_device(trial)
        with self._reference(trial.problem) as reference, ExitStack() as children:
            checker = self.check_stage.checker(trial, reference)
            with trial.clock.during(Stage.BUILD):
                if trial.is_timed:
                    prepare_comparators(self.session, trial, reference)
                subject = self.check_stage.start_and_prepare(trial, checker)
                children.callback(self.session.children.end, subject)
            if trial.is_timed and trial.quick:
                slower = self._look(trial, subject, checker, reference)
                if slower is not None:
                    named = libraries.library_operations(checker.report.operations)
                    return outcomes.slower(
                        trial, self.origin, _with_libraries(trial, screened, named), checker.report, slower
                    )
            with trial.clock.during(Stage.CORRECTNESS):
                report = self.check_stage.check(trial, subject, checker, Stage.CORRECTNESS)
                self.check_stage.note_passed(trial, report)
            evidence = {"correctness": report.evidence()}
            named = libraries.library_operations(report.operations)
            screened = _with_libraries(trial, screened, named)
            if not trial.is_timed:
                return outcomes.passed(trial, self.origin, screened, evidence, timed=False)
            resources: dict[str, Any] = {"kernels": compiled_kernels(subject, Stage.CORRECTNESS)}
            with trial.clock.during(Stage.TIMING):
                times = time_candidate(self.session, trial, subject, reference, self.protocol)
                self._note_gain(trial, times)
            resources |= {"ran": symbols.shares(times.ran), "operations": report.operations}
            screened = _with_libraries(trial, screened, named, self._libraries_seen(trial, subject, reference, times))
        note = "; ".join(unchecked_in_words(times.unchecked()))
        return outcomes.passed(
            trial, self.origin, screened, evidence, times.measurements, times.ratios(), resources=resources, note=note
        )

    def _note_gain(self, trial: Trial, times: Times) -> None:
        lows = [one.interval.low for one in times.ratios() if one.against == "fastest" and one.workload is not None]
        self.check_stage.note_gain(trial, min(lows, default=0.0))

    def surely_faster(self, trial: Trial) -> bool:
        """Return whether this judge has seen the Candidate much faster than the fastest Baseline on each Workload, and
        a confirmation compares it with that alone. A later Baseline may be faster."""
        return trial.champion is None and self.check_stage.least_gain(trial) >= self.protocol.surely_faster

    def _look(self, trial: Trial, subject: Subject, checker: Checker, reference: Subject) -> Times | None:
        """Check the first sizes and look at the time. Return it if the Candidate is clearly slower. Raises Rejection.

        No other Candidate is spared a check.
        """
        with trial.clock.during(Stage.CORRECTNESS):
            self.check_stage.check_first(trial, subject, checker)
        with trial.clock.during(Stage.TIMING):
            return look(self.session, trial, subject, reference, self.protocol)

    def _libraries_seen(self, trial: Trial, subject: Subject, reference: Subject, times: Times) -> list[str]:
        """Return the libraries that were seen at work, after timing, since watching slows a child."""
        with self.session.shared():
            launched = launched_kernels.library_kernels(trial.problem, trial.candidate, subject, reference)
            return [*libraries.sampled_libraries(times.ran), *launched]

    @contextmanager
    def _reference(self, problem: Problem) -> Iterator[Subject]:
        with ExitStack() as lent:
            try:
                reference = lent.enter_context(self.session.references.lend(problem))
            except ChildFault as fault:
                raise Rejection(
                    Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference does not load: {fault}"
                ) from fault
            yield reference

    # ------------------------------------------------------------ shared with other stages

    def evaluate(self, trial: Trial, work: Callable[[], Evaluation]) -> Evaluation:
        """Test the device after a fault, do the work and return the Evaluation of its outcome."""
        try:
            self._probe()
            return work()
        except Rejection as found:
            return self.refused(trial, found)
        except EvaluatorError as error:
            return self.internal_error(trial, error)

    def refused(self, trial: Trial, found: Rejection) -> Evaluation:
        self.suspicious = self.suspicious or outcomes.may_have_broken_device(found)
        return outcomes.refused(trial, self.origin, found)

    def internal_error(self, trial: Trial, error: EvaluatorError) -> Evaluation:
        return self.refused(trial, outcomes.internal_error(trial, error))

    def with_retries(self, problem: Problem, work: Callable[[], Done]) -> Done:
        """Do the work; retry without inputs that the reference does not survive, and when memory runs out."""
        return self.retry_on_shortage(lambda: self.session.references.exclusions.retry_without(problem, work))

    def retry_on_shortage(self, work: Callable[[], Done]) -> Done:
        """Do the work; retry when memory runs out. Raise EvaluatorError for a call of the judge that torch refuses."""
        try:
            return memory_shortage.retry_on_shortage(
                work, self.backend, self.session, self.release_memory, self.patience
            )
        except (torch.OutOfMemoryError, LayoutError):
            raise
        except outcomes.TORCH_ERRORS as error:
            self.suspicious = True
            raise outcomes.refused_by_torch(error) from error

    def release_memory(self) -> None:
        """End every cached child and release all cached memory."""
        self.session.end_all()
        self.check_stage.forget_cases()
        self.backend.release_caches()

    def _probe(self) -> None:
        """Test the device after a fault, so that a Candidate is not blamed for the one before it.

        Raises EvaluatorError if the device is lost; then `lost` is set, and this judge has to be restarted.
        """
        if self.suspicious:
            self.session.reset()
            self.check_stage.forget_cases()
            why = self.backend.probe()
            self.lost = bool(why)
            if why:
                raise EvaluatorError(f"{why}. The judge has to be restarted")
            self.suspicious = False


def _host_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _screen_for_device(trial: Trial) -> Screened:
    """Screen a Candidate. Raises Rejection, also where its language or the Problem does not fit the device."""
    screened = screen(trial.problem, trial.candidate)
    if not trial.workloads:
        raise Rejection(Verdict.INVALID_REFERENCE, Stage.SCREEN, f"no workload applies to {trial.kind}")
    trial.check_language()
    return screened


def _with_libraries(trial: Trial, screened: Screened, *found: list[str]) -> Screened:
    """Add the libraries that a Candidate uses. Raises Rejection where the Problem forbids them."""
    every = [name for names in found for name in names]
    libraries.check_policy(trial.problem, every, Stage.INTEGRITY)
    return replace(screened, libraries=tuple(sorted({*screened.libraries, *every})))
