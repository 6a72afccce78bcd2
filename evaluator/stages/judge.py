"""The judge on one device: Problems are admitted, Baselines timed, Candidates built, judged and confirmed here."""

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
from evaluator.correctness.cases import KeptCases, Prepared
from evaluator.correctness.checker import Checker
from evaluator.correctness.compare_outputs import Report
from evaluator.device_session import Room
from evaluator.devices.base import DeviceBackend
from evaluator.errors import ChildFault, ComparatorFailed, EvaluatorError, Rejection
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
from evaluator.stages.stage_clock import Clockwork, first_call_limit_s, load_limit_s
from evaluator.subject import Subject, rejection
from evaluator.timing.bench import BRIEF_SAMPLING, LIBRARY_SAMPLING, Bench, Rules, SampledContender
from evaluator.timing.contender import Contender
from evaluator.timing.speedups import speedups
from evaluator.tools.sanitizer import Known
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
_KEPT_SHARE, _KEPT_BYTES = 1 / 16, 256 << 20  # of a GPU's memory, and where there is none: for KeptCases
_JUDGE_RULES = Rules()
_FAULTS = (Verdict.RUNTIME_ERROR, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY, Verdict.INTERNAL_ERROR)


def secret_generator() -> torch.Generator:
    """Randomness that no child can guess."""
    return torch.Generator().manual_seed(secrets.randbits(63))


class Judge:
    """Judges on one device, one request at a time. Close it: every child ends with it."""

    def __init__(self, backend: DeviceBackend, room: Room | None = None) -> None:
        torch.set_num_threads(1)
        self.backend = backend
        self.room = room or Room(backend)
        self.device = backend.describe()
        self.environment = backend.environment()
        self.lost = self._suspicious = False
        self.built = BuiltFiles.here(self.environment)
        self.tools = Known()
        self.left_out = self.room.left_out
        memory_bytes = self.device.facts.get("memory_bytes")
        self.kept_cases = KeptCases(int(memory_bytes * _KEPT_SHARE) if memory_bytes else _KEPT_BYTES)

    def close(self) -> None:
        self.room.close()
        self.backend.close()

    def isolation(self) -> tuple[str, ...]:
        """What this machine cannot enforce, in words."""
        self.room.pool()
        return self.room.isolation

    def warm(self) -> None:
        """Make ready what the first Candidate on a GPU would wait for, five seconds of work; a CPU has little of it."""
        if self.backend.kind is DeviceKind.CUDA:
            # What fails here fails again, and is told, where it is needed.
            with suppress(EvaluatorError), self.shared():
                self.room.warm()

    def shared(self) -> AbstractContextManager[None]:
        """While entered, nobody times anything on the device (`Turns.shared`). Never entered twice."""
        return self.room.sharing.shared()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While entered, nobody else uses the device: what is timed is timed in here."""
        self.room.settle()
        with self.room.sharing.exclusive():
            yield

    # ------------------------------------------------------------ judge

    def judge(self, problem: Problem, candidate: Candidate, baseline: BaselineReport | None = None) -> Evaluation:
        """Screen, build, check and time one Candidate. Never raises for anything that a Candidate does.

        `baseline` chooses the comparator of each Workload; without it all Baselines of the device are timed beside.
        """
        clock = Clockwork()
        try:
            self.probe()
            self.backend.trim()
            self.room.replenish()
            return self.enduring(problem, lambda: self._judge(problem, candidate, baseline, clock))
        except Rejection as found:
            return self.refusal(problem, candidate, found, clock)
        except (ComparatorFailed, EvaluatorError) as error:
            return self.internal_error(problem, candidate, error, clock)
        except RuntimeError as error:  # torch refuses something of ours; where, whoever mends it has to know
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}, in {place.name}"
            return self.internal_error(problem, candidate, EvaluatorError(f"{str(error)[:300]} ({where})"), clock)

    def enduring(self, problem: Problem, work: Callable[[], Done]) -> Done:
        """Do it; again without what the reference does not survive, and again where memory ran out. Raises what `work`
        raises."""
        return memory_shortage.enough(self, lambda: self.left_out.surviving(problem, work))

    def release(self) -> None:
        """End every child that is kept, and give back all memory that is kept for later."""
        self.room.end_all()
        self.kept_cases.clear()
        self.backend.release_caches()

    def checker(
        self, problem: Problem, candidate: Candidate, reference: Subject, generator: torch.Generator
    ) -> Checker:
        """What checks a Candidate against a reference."""
        return Checker(problem, reference, generator, first_call_limit_s(candidate))

    def probe(self) -> None:
        """After a fault, and before anything else is judged: a Candidate must not answer for what the one before it
        left behind. Raises EvaluatorError; `lost` is then set, and this judge has to be started again."""
        if self._suspicious:
            self.room.renew()
            self.kept_cases.clear()
            why = self.backend.probe()
            self.lost = bool(why)
            if why:
                raise EvaluatorError(f"{why}. The judge has to be started again")
            self._suspicious = False

    def _judge(
        self, problem: Problem, candidate: Candidate, baseline: BaselineReport | None, clock: Clockwork
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
                subject = self._start_beside(candidate, checker, workloads)
                children.callback(self.room.end, subject)
            with clock.during(Stage.CORRECTNESS):
                checked = self.checked(candidate, subject, checker, workloads, Stage.CORRECTNESS)
            evidence: dict[str, Any] = {"correctness": checked.evidence()}
            named = libraries.named(checked.operations)
            libraries.check(problem, named, Stage.INTEGRITY)
            screened = replace(screened, libraries=tuple(sorted({*screened.libraries, *named})))
            if not timed:
                return self.passed(problem, candidate, screened, clock, evidence, (), (), timed=False)
            resources = self.resources(subject, Stage.CORRECTNESS)
            with clock.during(Stage.TIMING):
                measurements, ratios, ran = self._time(
                    problem, candidate, subject, reference, baseline, workloads, generator
                )
            resources |= {"ran": symbols.shares(ran), "operations": checked.operations}
            with self.shared():  # after it was timed: being watched makes it slower
                found = [*libraries.seen(ran), *launched_kernels.of_libraries(problem, candidate, subject, reference)]
            libraries.check(problem, [*named, *found], Stage.INTEGRITY)
            screened = replace(screened, libraries=tuple(sorted({*screened.libraries, *found})))
        return self.passed(problem, candidate, screened, clock, evidence, measurements, ratios, resources=resources)

    def _start_beside(self, candidate: Candidate, checker: Checker, workloads: Sequence[Workload]) -> Subject:
        """Start the Candidate's child, which is mostly waiting, while the reference works out what it is checked with
        first. Raises Rejection."""
        first = next(sizes_to_check(checker.problem, workloads))
        with ThreadPoolExecutor(1) as starter:
            started = starter.submit(self.start_candidate, candidate, Stage.BUILD)
            try:
                with self.shared():
                    checker.prepare(first, lambda: self._first_cases(candidate, checker, first))
            except BaseException:
                with suppress(Rejection):
                    started.result().close()
                raise
        return started.result()

    def _first_cases(self, candidate: Candidate, checker: Checker, first: Sizes) -> Prepared | None:
        """What another Candidate was checked with, if this one has not seen it. Raises Rejection."""
        reference, generator = checker.reference, checker.generator
        found = self.kept_cases.take(checker.problem, candidate, first, reference, generator)
        if found is None:
            found = checker.prepared(first)
            self.kept_cases.put(checker.problem, candidate, first, found)
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
            modes = [baseline.fastest(workload.name).mode] if baseline is not None else list(self.room.modes())
            with self.shared():
                oracle = Oracle(problem, reference, workload.sizes, generator)
                buffers = self.constructed(subject, oracle, problem, Stage.TIMING)
            contenders = [Contender("candidate", subject, suspect=True, buffers=buffers, plain=plain)]
            # Not while the device is held: a new comparator may compile for a minute.
            contenders += [self.room.contender(problem, workload, mode, oracle) for mode in modes]
            with self.shared():
                first_s = first_call_limit_s(candidate)
                bench = Bench(self.room, workload, oracle, contenders, first_call_s=first_s)
            try:
                with self.alone():
                    watched = (
                        None if ran else SampledContender("candidate", LIBRARY_SAMPLING if strict else BRIEF_SAMPLING)
                    )
                    ran = bench.run(_JUDGE_RULES, watched) or ran
                    measurements.append(bench.measurement("candidate", modes, self.floor_us(bench)))
            finally:
                with self.shared():
                    bench.close(ending=["candidate"] if workload is shown[-1] else [])
            fastest = min(modes, key=lambda mode: bench.baseline_time(mode).median_us)
            for against in dict.fromkeys([*modes, "fastest"]):
                over = fastest if against == "fastest" else against
                logs.setdefault(against, []).append((workload, bench.official_log_ratios(over, "candidate")))
        return measurements, speedups(logs, len(measurements)), ran

    @staticmethod
    def resources(subject: Subject, stage: Stage) -> dict[str, Any]:
        """Registers, shared memory and spills of what a Candidate has compiled: claims, for reports."""
        try:
            return {"kernels": subject.kernels()}
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, stage, "asked for its kernels") from fault

    @staticmethod
    def constructed(subject: Subject, oracle: Oracle, problem: Problem, stage: Stage) -> Mapping[str, torch.Tensor]:
        """Build ModelNew with the oracle's parameters. Returns the reference's buffers under its names for them."""
        try:
            names = subject.construct("ModelNew", oracle.init, train=problem.train, seed=7)
            matched = match_names(oracle.names, names)
            subject.load_state(oracle.state_for(matched))
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, stage, "constructing ModelNew") from fault
        return {matched[name]: value for name, value in oracle.buffers.items() if name in matched}

    # ------------------------------------------------------------ shared with confirm and admit

    def checked(
        self, candidate: Candidate, subject: Subject, checker: Checker, workloads: Sequence[Workload], stage: Stage
    ) -> Report:
        """Everything about correctness. Held-out data is shown to a child of its own, which ends with it, and so cannot
        tell anybody. Between two sets of sizes others may time something. Raises Rejection."""
        checker.candidate = subject
        self.room.keep_still(subject)
        every = list(sizes_to_check(checker.problem, workloads))
        for sizes in every:
            if not sizes.hidden:
                with self.shared():
                    checker.check(sizes)
        hidden = [sizes for sizes in every if sizes.hidden]
        if candidate.language is Language.TRITON:  # compiled by its first calls
            self._keep_built(candidate, subject, stage)
        if hidden:
            checker.candidate = other = self.start_candidate(candidate, stage)
            self.room.keep_still(other)
            try:
                for sizes in hidden:
                    with self.shared():
                        checker.check(sizes)
            finally:
                self.room.end(other)
        return checker.report

    def start_candidate(self, candidate: Candidate, stage: Stage) -> Subject:
        """A fresh child with the Candidate loaded, given what an earlier child of it compiled. Raises Rejection."""
        pool = self.room.candidate_pool(adapter(candidate.language))
        known = self.built.get(candidate) is not None
        files, load_s = self.built_files(candidate), load_limit_s(candidate)
        try:
            subject = self.room.start(pool, candidate.source, "candidate", files=files, load_s=load_s)
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault
        if not known:
            try:
                self._keep_built(candidate, subject, stage)
            except Rejection:
                subject.close()
                raise
        return subject

    def built_files(self, candidate: Candidate) -> Mapping[str, bytes]:
        """What a child of a Candidate need not compile, by its path in the child's job folder."""
        return {**self.room.runtime_files(candidate.language), **(self.built.get(candidate) or {})}

    def _keep_built(self, candidate: Candidate, subject: Subject, stage: Stage) -> None:
        """Keep what a child of a Candidate has compiled, for later children of the same Candidate."""
        try:
            self.built.put(candidate, built_by(subject.child))
        except ChildFault as fault:
            raise rejection(fault, stage, "loading the module") from fault

    @contextmanager
    def _reference(self, problem: Problem) -> Iterator[Subject]:
        with ExitStack() as lent:
            try:
                reference = lent.enter_context(self.room.kept_reference(problem))
            except ChildFault as fault:
                raise Rejection(
                    Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference does not load: {fault}"
                ) from fault
            yield reference

    def floor_us(self, bench: Bench) -> float | None:
        """Compulsory bytes of one call at the rate that a plain copy attains: for reports, never for refusals."""
        rate = self.backend.copy_rate_gbs()
        return None if rate is None else bench.bytes_moved / (rate * 1000)

    def passed(
        self,
        problem: Problem,
        candidate: Candidate,
        screened: Screened,
        clock: Clockwork,
        evidence: Mapping[str, Any],
        measurements: Sequence[Measurement],
        ratios: Sequence[Ratio],
        *,
        timed: bool = True,
        resources: Mapping[str, Any] = MappingProxyType({}),
    ) -> Evaluation:
        """The Evaluation of a Candidate that is right, with its times."""
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
            isolation=self.room.isolation,
            device=self.device,
            environment=self.environment,
            libraries=screened.libraries,
            resources=clean(resources),
            timed=timed,
            duration_s=clock.duration_s,
        )

    def refusal(self, problem: Problem, candidate: Candidate, found: Rejection, clock: Clockwork) -> Evaluation:
        """The Evaluation of a Candidate that is refused; where a line of it is known, with that line's text."""
        self._suspicious = self._suspicious or found.verdict in _FAULTS
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
            isolation=self.room.isolation,
            device=self.device,
            environment=self.environment,
            duration_s=clock.duration_s,
        )

    def internal_error(
        self, problem: Problem, candidate: Candidate, error: EvaluatorError, clock: Clockwork
    ) -> Evaluation:
        """The Evaluation when this machine or our own set-up failed."""
        found = Rejection(Verdict.INTERNAL_ERROR, clock.stage, f"{type(error).__name__}: {error}"[:1000])
        return self.refusal(problem, candidate, found, clock)


def named_dtypes(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """The sizes of Workloads that are texts: dtypes, by convention."""
    return tuple(v for workload in workloads for v in workload.sizes.values() if isinstance(v, str))
