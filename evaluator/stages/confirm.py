"""Confirm a Candidate: new processes, new seeds, held-out Workloads, a fixed length, against Champion and Baselines.

Nothing stops early, so chance cannot choose the moment at which times are compared.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from evaluator.correctness.checker import Checker
from evaluator.device_session import DeviceSession
from evaluator.errors import Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import Screened, screen
from evaluator.stages import outcomes
from evaluator.stages.candidate_children import CandidateChildren, compiled_kernels, construct
from evaluator.stages.judge import Judge
from evaluator.stages.outcomes import Origin
from evaluator.stages.time_candidate import baseline_contender, copy_floor_us
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.timing import stats
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.timing.protocol import STANDARD, Promotion, TimingProtocol
from evaluator.timing.speedups import speedups
from evaluator.tools import counters, sanitizer
from evaluator.tools.target_application import TargetApplication, add_small_calls
from evaluator.types import (
    BaselineReport,
    Candidate,
    Evaluation,
    Interval,
    Measurement,
    Problem,
    Stage,
    Verdict,
    Workload,
)


@dataclass(slots=True)
class _Times:
    """The repetitions of one Workload: a log ratio per repetition and comparator, and samples to show."""

    workload: Workload
    log_ratios: dict[str, list[float]] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    resolution: float = 0.0  # the largest over the Candidate's repetitions


def confirm(
    judge: Judge,
    problem: Problem,
    candidate: Candidate,
    champion: Candidate | None = None,
    baseline: BaselineReport | None = None,
) -> Evaluation:
    """Judge again in new processes and decide about promotion. Never raises for a fault of the Candidate.

    `evidence["promote"]` has the decision; `evidence["confirm"]` has the `bound` (one-sided 99.9 %), `threshold`,
    `against` and the A/A spread.
    """
    trial = Trial(problem=problem, candidate=candidate, kind=judge.backend.kind, baseline=baseline, champion=champion)
    return judge.evaluate(trial, lambda: judge.with_retries(problem, lambda: _confirm(judge, trial)))


def _confirm(judge: Judge, trial: Trial) -> Evaluation:
    with trial.clock.during(Stage.SCREEN):
        screened = screen(trial.problem, trial.candidate)
    with trial.clock.during(Stage.CONFIRM), judge.session.references.start(trial.problem) as reference:
        checked = _check(judge, trial, reference)
        if not trial.is_timed:
            raise Rejection(Verdict.INVALID_SUBMISSION, Stage.CONFIRM, "this language is not timed on this device")
        protocol = judge.protocol
        timing = _Timing(judge.session, judge.children, trial, reference, protocol)
        found = [timing.run(workload, protocol.process_pairs) for workload in trial.shown]
        hidden = [timing.run(workload, protocol.hidden_pairs) for workload in trial.held_out]
        resources = _resources(judge, checked)
    return _result(trial, judge.origin, screened, found, hidden, checked.evidence, resources, protocol.promotion)


@dataclass(frozen=True, slots=True)
class _Checked:
    """The results of a passed check. `application` is ready to run under a tool, if there is one."""

    evidence: dict[str, Any]
    kernels: list[dict[str, Any]]
    application: TargetApplication | None


def _check(judge: Judge, trial: Trial, reference: Subject) -> _Checked:
    """Check correctness again with new seeds, held-out Workloads included; then run compute-sanitizer."""
    with judge.children.start(trial.candidate, Stage.CONFIRM) as subject:
        checker = Checker(trial.problem, reference, trial.generator, trial.first_call_s)
        report = judge.check_stage.check(trial, subject, checker, Stage.CONFIRM)
        evidence: dict[str, Any] = {"correctness": report.evidence()}
        kernels = compiled_kernels(subject, Stage.CONFIRM)
        application = None
        if trial.kind in sanitizer.DEVICES:
            with judge.session.shared():
                application, evidence["sanitizer"] = _sanitize(judge, trial, subject, reference)
    return _Checked(evidence, kernels, application)


def _sanitize(
    judge: Judge, trial: Trial, subject: Subject, reference: Subject
) -> tuple[TargetApplication | None, dict[str, Any]]:
    """Return the application for tools, if a tool can run, and compute-sanitizer's evidence. Raises Rejection."""
    why = sanitizer.unavailable(trial.candidate, judge.tool_history)
    if why and counters.unavailable(judge.tool_history.broken):
        return None, sanitizer.not_run(why)
    built = judge.children.files(trial.candidate)
    application = TargetApplication.of(trial.problem, trial.candidate, judge.device, built)
    no_calls = add_small_calls(application, subject, reference, trial.generator, trial.workloads)
    if no_calls:
        return None, sanitizer.not_run(why or no_calls)
    return application, sanitizer.not_run(why) if why else sanitizer.check(application, judge.tool_history)


def _resources(judge: Judge, checked: _Checked) -> dict[str, Any]:
    """Return registers, shared memory and spills, and the hardware counters or the reason why there are none."""
    found: dict[str, Any] = {"kernels": checked.kernels}
    if checked.application is not None:
        with judge.session.shared():
            kernels, why = counters.read(checked.application, judge.tool_history.broken)
        found |= counters.resources(kernels, why)
    return found


@dataclass(frozen=True, slots=True)
class _Timing:
    """Times a Candidate against its comparators, in new processes for every repetition."""

    session: DeviceSession
    children: CandidateChildren
    trial: Trial
    reference: Subject
    protocol: TimingProtocol

    def modes(self, workload: Workload, oracle: Oracle) -> list[str]:
        """Return the Baselines of a Workload; eager alone for a held-out one, for which nothing is compiled.

        What still compiles is waited for: it may be the fastest.
        """
        if workload.held_out:
            return ["eager"]
        if self.trial.baseline is None:
            return list(self.session.comparators.modes())
        comparators, problem = self.session.comparators, self.trial.problem
        known = ["eager", self.trial.baseline.fastest(workload.name).mode]
        late = [m for m in self.trial.baseline.pending if comparators.works(problem, workload, m, oracle)]
        return list(dict.fromkeys([*known, *late]))

    def run(self, workload: Workload, repetitions: int) -> _Times:
        trial, times = self.trial, _Times(workload)
        oracle = Oracle(trial.problem, self.reference, workload.sizes, trial.generator)
        modes = self.modes(workload, oracle)
        bench = Bench(self.session, workload, oracle, [], protocol=self.protocol, first_call_s=trial.first_call_s)
        try:
            with self.session.exclusive():
                rehearsal = int(torch.randint(repetitions, (1,), generator=trial.generator))
                for repetition in range(repetitions):
                    with ExitStack() as processes:
                        with self.session.sharing.released():  # starting processes is most of a confirmation
                            bench.replace(self._contenders(modes, oracle, workload, processes))
                        bench.run(replace(self.protocol.confirm, rehearse=repetition == rehearsal))
                        _note(times, bench, modes, trial.champion is not None)
                        floor_us = copy_floor_us(self.session.backend, bench.bytes_moved)
                        times.measurements.append(bench.measurement("candidate", modes, floor_us))
                        bench.replace([])
        finally:
            bench.close()
        return times

    def _contenders(
        self, modes: Sequence[str], oracle: Oracle, workload: Workload, processes: ExitStack
    ) -> list[Contender]:
        """Start new processes, except for compiled Baselines: their code lives in their process.

        "again" is the Candidate in another process. Its distance from "candidate" is the A/A spread.
        """
        problem = self.trial.problem
        suspects = {"candidate": self.trial.candidate, "again": self.trial.candidate}
        if self.trial.champion is not None:
            suspects["champion"] = self.trial.champion
        contenders: list[Contender] = []
        for name, subject in self._start_together(suspects, processes).items():
            self.session.freeze_while_waiting(subject)
            buffers = construct(subject, oracle, problem, Stage.CONFIRM)
            plain = is_restricted(suspects[name].source)
            contenders.append(Contender(name, subject, True, buffers, sampled=name == "again", plain=plain))
        for mode in modes:
            if mode == "eager":
                subject = processes.enter_context(self.session.comparators.start(problem, mode, oracle))
                contenders.append(Contender(mode, subject, suspect=False, buffers=oracle.buffers))
            else:
                contenders.append(baseline_contender(self.session, problem, workload, mode, oracle))
        return contenders

    def _start_together(self, suspects: Mapping[str, Candidate], processes: ExitStack) -> dict[str, Subject]:
        """Start children in parallel: this mostly waits for the device's driver, which serves several at once."""
        with ThreadPoolExecutor(len(suspects)) as starters:
            started = {n: starters.submit(self.children.start, one, Stage.CONFIRM) for n, one in suspects.items()}
        for future in started.values():
            if future.exception() is None:
                processes.enter_context(future.result())
        return {name: future.result() for name, future in started.items()}


def _note(times: _Times, bench: Bench, modes: Sequence[str], champion: bool) -> None:
    names = ["again", *modes, *(["champion"] if champion else [])]
    for name in names:
        times.log_ratios.setdefault(name, []).append(statistics.median(bench.log_ratios(name, "candidate")))
    times.resolution = max(times.resolution, bench.resolution("candidate"))
    for contender in bench.contenders:
        times.rounds.setdefault(contender.name, []).append(contender.official_us())


def _result(
    trial: Trial,
    origin: Origin,
    screened: Screened,
    found: Sequence[_Times],
    hidden: Sequence[_Times],
    evidence: dict[str, Any],
    resources: Mapping[str, Any],
    promotion: Promotion,
) -> Evaluation:
    logs: dict[str, list[tuple[Workload, list[float]]]] = {}
    with_champion = trial.champion is not None
    for times in found:
        modes = [name for name in times.rounds if name not in ("candidate", "again", "champion")]
        fastest = min(modes, key=lambda mode: statistics.median(times.rounds[mode]))
        for against in [*modes, "fastest", *(["champion"] if with_champion else [])]:
            source = fastest if against == "fastest" else against
            logs.setdefault(against, []).append((times.workload, times.log_ratios[source]))
    against = "champion" if with_champion else "fastest"
    on_held_out = [(t.workload, t.log_ratios["champion" if with_champion else "eager"]) for t in hidden]
    again = [(t.workload, t.log_ratios["again"]) for t in found]
    plain = is_restricted(trial.candidate.source)
    decision = _promotion(logs[against], again, on_held_out, [] if plain else [t.resolution for t in found], promotion)
    evidence["promote"] = decision.pop("promote")
    evidence["confirm"] = {**decision, "against": against, "process_pairs": len(found[0].measurements), "plain": plain}
    measurements = [_merged(times) for times in found]
    ratios = speedups(logs, len(found))
    return outcomes.passed(trial, origin, screened, evidence, measurements, ratios, resources=resources)


def _promotion(
    against: Sequence[tuple[Workload, list[float]]],
    again: Sequence[tuple[Workload, list[float]]],
    on_held_out: Sequence[tuple[Workload, list[float]]] = (),
    resolutions: Sequence[float] = (),
    promotion: Promotion = STANDARD.promotion,
) -> dict[str, Any]:
    """Decide about promotion.

    The bound must exceed 1 + the largest of three: the least gain, the spread of equal kernels on this device, and the
    gain that a child could get from a faster harness (`resolutions` per Workload, weighted as the ratios are). No
    Workload may be slower. A slower held-out one is reported without its name.
    """
    bound = stats.lower_bound(_headline(against), promotion.confidence)
    spread = _spread(_headline(again))
    gains = [(workload, [math.log1p(share)]) for (workload, _), share in zip(against, resolutions, strict=False)]
    resolution = math.expm1(_headline(gains)[0]) if gains else 0.0
    threshold = 1 + max(promotion.least_gain, spread, resolution)
    worse = [w for w, logs in [*against, *on_held_out] if stats.ratio_interval(logs)[1].high < promotion.worst_workload]
    return {
        "promote": bound > threshold and not worse,
        "bound": round(bound, 5),
        "threshold": round(threshold, 5),
        "aa_spread": round(spread, 5),
        "harness_share": round(resolution, 5),
        "worse_workloads": list(dict.fromkeys("a held-out workload" if w.held_out else w.name for w in worse)),
    }


def _headline(parts: Sequence[tuple[Workload, list[float]]]) -> list[float]:
    """Return the weighted mean of log ratios over Workloads, per repetition."""
    total = sum(workload.weight for workload, _ in parts)
    repetitions = min(len(logs) for _, logs in parts)
    return [sum(w.weight * logs[i] for w, logs in parts) / total for i in range(repetitions)]


def _spread(logs: Sequence[float]) -> float:
    """Return the apparent difference of equal kernels: the larger of their mean difference and twice its error."""
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return math.expm1(max(abs(statistics.fmean(logs)), 2 * error))


def _merged(times: _Times) -> Measurement:
    """Return one Measurement over all repetitions, with its Baselines."""
    parts = times.measurements
    median, interval = _centre(times.rounds["candidate"])
    first = parts[0]
    baselines = []
    for index, one in enumerate(first.baselines):
        centre, reach = _centre(times.rounds[one.mode])
        samples = tuple(us for part in parts for us in part.baselines[index].samples_us)
        baselines.append(replace(one, median_us=centre, interval_us=reach, samples_us=samples))
    return replace(
        first,
        samples_us=tuple(us for part in parts for us in part.samples_us),
        median_us=median,
        interval_us=interval,
        baselines=tuple(baselines),
        adjustments=tuple(one for part in parts for one in part.adjustments),
        diagnostics={"process_pairs": len(parts), **_last(parts)},
    )


def _last(parts: Sequence[Measurement]) -> Mapping[str, Any]:
    return parts[-1].diagnostics


def _centre(samples: Sequence[float]) -> tuple[float, Interval]:
    median = statistics.median(samples)
    _, interval = stats.ratio_interval([math.log(us) for us in samples])
    return median, Interval(low=min(interval.low, median), high=max(interval.high, median))
