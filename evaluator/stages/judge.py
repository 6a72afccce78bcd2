"""The judge on one device: screen, build, check and time a Candidate."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.clean import clean, clean_text
from evaluator.correctness.cases import CaseCache, PreparedCases
from evaluator.correctness.checker import Checker
from evaluator.correctness.compare_outputs import Report
from evaluator.device_session import DeviceSession
from evaluator.devices.base import DeviceBackend
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.inputs.sizes import Sizes, sizes_to_check
from evaluator.languages import adapter
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import match_names
from evaluator.sandbox import symbols
from evaluator.sandbox.build_cache import BuiltFiles, built_by
from evaluator.screening import launched_kernels, libraries
from evaluator.screening.plain import is_plain
from evaluator.screening.screen import Screened, screen
from evaluator.stages import memory_shortage
from evaluator.stages.comparators import baseline_contender
from evaluator.stages.stage_clock import StageClock, first_call_limit_s, load_limit_s
from evaluator.subject import Subject, rejection
from evaluator.timing.bench import BRIEFLY, FOR_LIBRARIES, Bench, Rules, Watched
from evaluator.timing.contender import ComparatorFailed, Contender
from evaluator.timing.speedups import speedups
from evaluator.tools.sanitizer import ToolHistory
from evaluator.types import (
    BaselineReport,
    Candidate,
    DeviceKind,
    Evaluation,
    Language,
    LibraryPolicy,
    Measurement,
    Problem,
    Ratio,
    Stage,
    Verdict,
    Workload,
)

Done = TypeVar("Done")
_KEPT_SHARE, _KEPT_BYTES = 1 / 16, 256 << 20  # of a GPU's memory, and where there is none: for CaseCache
_JUDGE_RULES = Rules()
_FAULT_VERDICTS = (Verdict.RUNTIME_ERROR, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY, Verdict.INTERNAL_ERROR)


def secret_generator() -> torch.Generator:
    """Return a generator with a seed that no child can guess."""
    return torch.Generator().manual_seed(secrets.randbits(63))


class Judge:
    """Judges on one device, one request at a time. `close` ends every child."""

    def __init__(self, backend: DeviceBackend, session: DeviceSession | None = None) -> None:
        torch.set_num_threads(1)
        self.backend = backend
        self.session = session or DeviceSession(backend)
        self.device = backend.describe()
        self.environment = backend.environment()
        self.lost = self._suspicious = False
        self.built = BuiltFiles.here(self.environment)
        self.tool_history = ToolHistory()
        memory_bytes = self.device.facts.get("memory_bytes")
        self.case_cache = CaseCache(int(memory_bytes * _KEPT_SHARE) if memory_bytes else _KEPT_BYTES)

    def close(self) -> None:
        self.session.close()
        self.backend.close()

    def isolation(self) -> tuple[str, ...]:
        """Return the limits of isolation that this machine cannot enforce."""
        self.session.pool()
        return self.session.isolation

    def warm(self) -> None:
        """Prepare on a GPU what the first Candidate would wait for, five seconds of work; a CPU needs little."""
        if self.backend.kind is DeviceKind.CUDA:
            # A fault here is reported when it happens again in use.
            with suppress(EvaluatorError), self.shared():
                self.session.warm()

    def shared(self) -> AbstractContextManager[None]:
        """Hold the device while no other judge times on it (`Turns.shared`). Not reentrant."""
        return self.session.turns.shared()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone, for timing."""
        self.session.finish_background_work()
        with self.session.turns.alone():
            yield

    # ------------------------------------------------------------ judge

    def judge(self, problem: Problem, candidate: Candidate, baseline: BaselineReport | None = None) -> Evaluation:
        """Screen, build, check and time one Candidate. Never raises for a fault of the Candidate.

        `baseline` chooses the comparator of each Workload; without it all Baselines of the device are timed, too.
        """
        clock = StageClock()
        try:
            self.probe()
            self.backend.trim()
            self.session.prestart()
            return self.with_retries(problem, lambda: self._judge(problem, candidate, baseline, clock))
        except Rejection as found:
            return self.refusal(problem, candidate, found, clock)
        except (ComparatorFailed, EvaluatorError) as error:
            return self.internal_error(problem, candidate, error, clock)
        except RuntimeError as error:  # torch refuses a call of the judge: report its place
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}, in {place.name}"
            return self.internal_error(problem, candidate, EvaluatorError(f"{str(error)[:300]} ({where})"), clock)

    def with_retries(self, problem: Problem, work: Callable[[], Done]) -> Done:
        """Do the work; retry without inputs that the reference does not survive, and when memory runs out."""
        return self.retry_on_shortage(lambda: self.session.exclusions.surviving(problem, work))

    def retry_on_shortage(self, work: Callable[[], Done]) -> Done:
        """Do the work; retry when memory runs out."""
        return memory_shortage.retry_on_shortage(work, self.backend, self.session, self.release_memory)

    def release_memory(self) -> None:
        """End every cached child and release all cached memory."""
        self.session.end_all()
        self.case_cache.clear()
        self.backend.release_kept()

    def checker(
        self, problem: Problem, candidate: Candidate, reference: Subject, generator: torch.Generator
    ) -> Checker:
        """Return a Checker of a Candidate against a reference."""
        return Checker(problem, reference, generator, first_call_limit_s(candidate))

    def probe(self) -> None:
        """Test the device after a fault, so that a Candidate is not blamed for the one before it.

        Raises EvaluatorError if the device is lost; then `lost` is set, and this judge has to be restarted.
        """
        if self._suspicious:
            self.session.reset()
            self.case_cache.clear()
            why = self.backend.probe()
            self.lost = bool(why)
            if why:
                raise EvaluatorError(f"{why}. The judge has to be restarted")
            self._suspicious = False

    def _judge(
        self, problem: Problem, candidate: Candidate, baseline: BaselineReport | None, clock: StageClock
    ) -> Evaluation:
        with clock.during(Stage.SCREEN):
            screened = screen(problem, candidate)
        workloads = problem.workloads_for(self.backend.kind)
        if not workloads:
            raise Rejection(Verdict.INVALID_REFERENCE, Stage.SCREEN, f"no workload applies to {self.backend.kind}")
        refused = adapter(candidate.language).refuses(self.backend.kind, named_dtypes(workloads))
        if refused is not None:
            raise Rejection(Verdict.INVALID_SUBMISSION, Stage.SCREEN, refused, check="device")
        generator = secret_generator()
        timed = adapter(candidate.language).timed_on(self.backend.kind)
        with self._reference(problem) as reference, ExitStack() as children:
            checker = self.checker(problem, candidate, reference, generator)
            with clock.during(Stage.BUILD):
                subject = self._start_while_preparing(candidate, checker, workloads)
                children.callback(self.session.end, subject)
            with clock.during(Stage.CORRECTNESS):
                checked = self.check_correctness(candidate, subject, checker, workloads, Stage.CORRECTNESS)
            evidence: dict[str, Any] = {"correctness": checked.evidence()}
            named = libraries.named(checked.operations)
            libraries.check(problem, named, Stage.INTEGRITY)
            screened = replace(screened, libraries=tuple(sorted({*screened.libraries, *named})))
            if not timed:
                return self.passed(problem, candidate, screened, clock, evidence, (), (), timed=False)
            resources = self.compiled_resources(subject, Stage.CORRECTNESS)
            with clock.during(Stage.TIMING):
                measurements, ratios, ran = self._time(
                    problem, candidate, subject, reference, baseline, workloads, generator
                )
            resources |= {"ran": symbols.shares(ran), "operations": checked.operations}
            with self.shared():  # after timing, since watching slows it
                found = [*libraries.seen(ran), *launched_kernels.of_libraries(problem, candidate, subject, reference)]
            libraries.check(problem, [*named, *found], Stage.INTEGRITY)
            screened = replace(screened, libraries=tuple(sorted({*screened.libraries, *found})))
        return self.passed(problem, candidate, screened, clock, evidence, measurements, ratios, resources=resources)

    def _start_while_preparing(self, candidate: Candidate, checker: Checker, workloads: Sequence[Workload]) -> Subject:
        """Start the Candidate's child, which is mostly waiting, while the reference prepares the first cases.

        Raises Rejection.
        """
        first = next(sizes_to_check(checker.problem, workloads))
        with ThreadPoolExecutor(1) as starter:
            started = starter.submit(self.start_candidate, candidate, Stage.BUILD)
            try:
                with self.shared():
                    checker.prepare(first, lambda: self._cached_cases(candidate, checker, first))
            except BaseException:
                with suppress(Rejection):
                    started.result().close()
                raise
        return started.result()

    def _cached_cases(self, candidate: Candidate, checker: Checker, first: Sizes) -> PreparedCases | None:
        """Return another Candidate's cases that this one has not seen, or new ones. Raises Rejection."""
        reference, generator = checker.reference, checker.generator
        found = self.case_cache.take(checker.problem, candidate, first, reference, generator)
        if found is None:
            found = checker.prepared(first)
            self.case_cache.put(checker.problem, candidate, first, found)
        return found

    def _time(
        self,
        problem: Problem,
        candidate: Candidate,
        subject: Subject,
        reference: Subject,
        baseline: BaselineReport | None,
        workloads: Sequence[Workload],
        generator: torch.Generator,
    ) -> tuple[list[Measurement], list[Ratio], dict[str, int]]:
        measurements: list[Measurement] = []
        logs: dict[str, list[tuple[Workload, list[float]]]] = {}
        ran: dict[str, int] = {}
        strict = problem.allow_library is LibraryPolicy.FORBIDDEN
        plain = is_plain(candidate.source)
        shown = [workload for workload in workloads if not workload.held_out]
        for workload in shown:
            modes = (
                [baseline.fastest(workload.name).mode] if baseline is not None else list(self.session.baseline_modes())
            )
            with self.shared():
                oracle = Oracle(problem, reference, workload.sizes, generator)
                buffers = self.construct_candidate(subject, oracle, problem, Stage.TIMING)
            contenders = [Contender("candidate", subject, suspect=True, buffers=buffers, plain=plain)]
            # The device is not held here: a new comparator may compile for a minute.
            contenders += [baseline_contender(self.session, problem, workload, mode, oracle) for mode in modes]
            with self.shared():
                first_s = first_call_limit_s(candidate)
                bench = Bench(self.session, workload, oracle, contenders, first_call_s=first_s)
            try:
                with self.exclusive():
                    watched = None if ran else Watched("candidate", FOR_LIBRARIES if strict else BRIEFLY)
                    ran = bench.run(_JUDGE_RULES, watched) or ran
                    measurements.append(bench.measurement("candidate", modes, self.copy_floor_us(bench)))
            finally:
                with self.shared():
                    bench.close(ending=["candidate"] if workload is shown[-1] else [])
            fastest = min(modes, key=lambda mode: bench.baseline_time(mode).median_us)
            for against in dict.fromkeys([*modes, "fastest"]):
                over = fastest if against == "fastest" else against
                logs.setdefault(against, []).append((workload, bench.official_log_ratios(over, "candidate")))
        return measurements, speedups(logs, len(measurements)), ran

    @staticmethod
    def compiled_resources(subject: Subject, stage: Stage) -> dict[str, Any]:
        """Return registers, shared memory and spills of a Candidate's kernels: claims, for reports."""
        try:
            return {"kernels": subject.kernels()}
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, stage, "asked for its kernels") from fault

    @staticmethod
    def construct_candidate(
        subject: Subject, oracle: Oracle, problem: Problem, stage: Stage
    ) -> Mapping[str, torch.Tensor]:
        """Construct ModelNew with the oracle's parameters; return the reference's buffers by the Candidate's names."""
        try:
            names = subject.construct("ModelNew", oracle.init, train=problem.train, seed=7)
            matched = match_names(oracle.names, names)
            subject.load_state(oracle.state_for(matched))
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, stage, "constructing ModelNew") from fault
        return {matched[name]: value for name, value in oracle.buffers.items() if name in matched}

    # ------------------------------------------------------------ shared with confirm and admit

    def check_correctness(
        self, candidate: Candidate, subject: Subject, checker: Checker, workloads: Sequence[Workload], stage: Stage
    ) -> Report:
        """Check correctness on every set of sizes. Raises Rejection.

        Held-out data goes to a separate child that ends afterwards, so it cannot pass it on. Between two sets of sizes
        other judges may time.
        """
        checker.candidate = subject
        self.session.freeze_while_waiting(subject)
        every = list(sizes_to_check(checker.problem, workloads))
        for sizes in every:
            if not sizes.hidden:
                with self.shared():
                    checker.check(sizes)
        hidden = [sizes for sizes in every if sizes.hidden]
        if candidate.language is Language.TRITON:  # compiled by its first calls
            self._store_built(candidate, subject, stage)
        if hidden:
            checker.candidate = other = self.start_candidate(candidate, stage)
            self.session.freeze_while_waiting(other)
            try:
                for sizes in hidden:
                    with self.shared():
                        checker.check(sizes)
            finally:
                self.session.end(other)
        return checker.report

    def start_candidate(self, candidate: Candidate, stage: Stage) -> Subject:
        """Start a child with the Candidate loaded, given the files that earlier ones compiled. Raises Rejection."""
        pool = self.session.candidate_pool(adapter(candidate.language))
        known = self.built.get(candidate) is not None
        files, load_s = self.built_files(candidate), load_limit_s(candidate)
        try:
            subject = self.session.start(pool, candidate.source, "candidate", files=files, load_s=load_s)
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault
        if not known:
            try:
                self._store_built(candidate, subject, stage)
            except Rejection:
                subject.close()
                raise
        return subject

    def built_files(self, candidate: Candidate) -> Mapping[str, bytes]:
        """Return the compiled files for a Candidate's child, by their paths in its job folder."""
        return {**self.session.runtime_files(candidate.language), **(self.built.get(candidate) or {})}

    def _store_built(self, candidate: Candidate, subject: Subject, stage: Stage) -> None:
        """Keep the compiled files of a Candidate's child for its later children."""
        try:
            self.built.put(candidate, built_by(subject.child))
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault

    @contextmanager
    def _reference(self, problem: Problem) -> Iterator[Subject]:
        with ExitStack() as lent:
            try:
                reference = lent.enter_context(self.session.cached_reference(problem))
            except ChildFault as fault:
                raise Rejection(
                    Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference does not load: {fault}"
                ) from fault
            yield reference

    def copy_floor_us(self, bench: Bench) -> float | None:
        """Return the time of one call's compulsory bytes at the rate of a plain copy: for reports, never refusals."""
        rate = self.backend.copy_rate_gbs()
        return None if rate is None else bench.bytes_moved / (rate * 1000)

    def passed(
        self,
        problem: Problem,
        candidate: Candidate,
        screened: Screened,
        clock: StageClock,
        evidence: Mapping[str, Any],
        measurements: Sequence[Measurement],
        ratios: Sequence[Ratio],
        *,
        timed: bool = True,
        resources: Mapping[str, Any] = MappingProxyType({}),
    ) -> Evaluation:
        """Return the Evaluation of a right Candidate with its times."""
        headline = next((r for r in ratios if r.against == "fastest" and r.workload is None), None)
        if headline is None:
            reason = "right on every check; not timed, because this device only interprets the language"
        else:
            reason = f"right on every check; {headline.value:.2f}x the fastest baseline"
        return Evaluation(
            verdict=Verdict.PASSED,
            stage=clock.stage,
            reason=reason,
            problem_hash=problem.hash,
            candidate_hash=candidate.hash,
            evidence=clean(evidence),
            measurements=tuple(measurements),
            speedups=tuple(ratios),
            isolation=self.session.isolation,
            device=self.device,
            environment=self.environment,
            libraries=screened.libraries,
            resources=clean(resources),
            timed=timed,
            duration_s=clock.duration_s,
        )

    def refusal(self, problem: Problem, candidate: Candidate, found: Rejection, clock: StageClock) -> Evaluation:
        """Return the Evaluation of a refused Candidate, with the text of the faulty line if that is known."""
        self._suspicious = self._suspicious or found.verdict in _FAULT_VERDICTS
        lines, line = candidate.source.splitlines(), found.evidence.get("line")
        if isinstance(line, int) and 0 < line <= len(lines):
            found.evidence.setdefault("source_line", lines[line - 1].strip()[:200])
        return Evaluation(
            verdict=found.verdict,
            stage=found.stage,
            reason=clean_text(found.reason, 1000) or "no reason is known",
            problem_hash=problem.hash,
            candidate_hash=candidate.hash,
            evidence=clean({key: value for key, value in found.evidence.items() if value is not None}),
            isolation=self.session.isolation,
            device=self.device,
            environment=self.environment,
            duration_s=clock.duration_s,
        )

    def internal_error(
        self, problem: Problem, candidate: Candidate, error: EvaluatorError, clock: StageClock
    ) -> Evaluation:
        """Return the Evaluation after a fault of this machine or our own set-up."""
        found = Rejection(Verdict.INTERNAL_ERROR, clock.stage, f"{type(error).__name__}: {error}"[:1000])
        return self.refusal(problem, candidate, found, clock)


def named_dtypes(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Return the sizes of Workloads that are texts: dtypes, by convention."""
    return tuple(v for workload in workloads for v in workload.sizes.values() if isinstance(v, str))
