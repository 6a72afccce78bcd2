"""Confirming a Candidate: fresh processes, fresh seeds, held-out Workloads, fixed length, side by side with the
Champion and the Baselines. Nothing here stops early, so that luck has no say in when to look."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from evaluator.errors import EvaluatorError, Rejection
from evaluator.languages import adapter
from evaluator.oracle.oracle import Oracle
from evaluator.screening.plain import is_plain
from evaluator.screening.screen import Screened, screen
from evaluator.stages.judge import Judge, secret_generator
from evaluator.stages.stage_clock import Clockwork, first_call_limit_s
from evaluator.subject import Subject
from evaluator.timing import stats
from evaluator.timing.bench import Bench, Rules
from evaluator.timing.contender import Contender
from evaluator.timing.speedups import speedups
from evaluator.tools import counters, sanitizer
from evaluator.tools.guest import Guest, small_calls
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

PROCESS_PAIRS = 8
_HIDDEN_PAIRS = 2
_RULES = Rules(least_pairs=4, most_pairs=4, racing=False, round_us=10_000.0)  # both sizes of round in both orders
_LEAST_GAIN = 0.01
_CONFIDENCE = 0.999
_WORST_WORKLOAD = 0.98


@dataclass(slots=True)
class _Times:
    """What one Workload's repetitions gave: a log ratio per repetition and comparator, and samples to show."""

    workload: Workload
    log_ratios: dict[str, list[float]] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    resolution: float = 0.0  # the largest of the Candidate's repetitions


def confirm(
    judge: Judge,
    problem: Problem,
    candidate: Candidate,
    champion: Candidate | None = None,
    baseline: BaselineReport | None = None,
) -> Evaluation:
    """Judge anew in fresh processes and say whether to promote. Never raises for anything that a Candidate does.

    `evidence["promote"]` says it; `evidence["confirm"]` has the `bound` (one-sided 99.9 %), `threshold`, `against` and
    the A/A spread.
    """
    clock = Clockwork()
    try:
        judge.probe()
        return judge.enduring(problem, lambda: _confirm(judge, problem, candidate, champion, baseline, clock))
    except Rejection as found:
        return judge.refusal(problem, candidate, found, clock)
    except EvaluatorError as error:
        return judge.internal_error(problem, candidate, error, clock)


def _confirm(
    judge: Judge,
    problem: Problem,
    candidate: Candidate,
    champion: Candidate | None,
    baseline: BaselineReport | None,
    clock: Clockwork,
) -> Evaluation:
    with clock.during(Stage.SCREEN):
        screened = screen(problem, candidate)
    generator = secret_generator()
    workloads = problem.workloads_for(judge.backend.kind)
    with clock.during(Stage.CONFIRM), judge.room.reference(problem) as reference:
        checked = _check(judge, problem, candidate, reference, generator, workloads)
        if not adapter(candidate.language).timed_on(judge.backend.kind):
            raise Rejection(Verdict.INVALID_SUBMISSION, Stage.CONFIRM, "this language is not timed on this device")
        task = _Task(judge, problem, candidate, champion, baseline, reference, generator)
        found = [_time(task, workload, PROCESS_PAIRS) for workload in workloads if not workload.held_out]
        hidden = [_time(task, workload, _HIDDEN_PAIRS) for workload in workloads if workload.held_out]
        resources = _resources(judge, checked)
    return _result(task, screened, clock, found, hidden, checked.evidence, resources)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What checking told, besides that the Candidate is right; `guest` is ready to run beneath a tool, if there is one
    to run it beneath."""

    evidence: dict[str, Any]
    kernels: list[dict[str, Any]]
    guest: Guest | None


def _check(
    judge: Judge,
    problem: Problem,
    candidate: Candidate,
    reference: Subject,
    generator: torch.Generator,
    workloads: Sequence[Workload],
) -> _Checked:
    """All of correctness again, on seeds of its own, held-out Workloads included; then what compute-sanitizer says."""
    with judge.start_candidate(candidate, Stage.CONFIRM) as subject:
        checker = judge.checker(problem, candidate, reference, generator)
        checked = judge.checked(candidate, subject, checker, workloads, Stage.CONFIRM)
        evidence: dict[str, Any] = {"correctness": checked.evidence()}
        kernels = judge.resources(subject, Stage.CONFIRM)["kernels"]
        guest, why = None, ""
        if judge.backend.kind in sanitizer.DEVICES:
            why = sanitizer.unavailable(candidate, judge.tools)
            with judge.shared():
                if not (why and counters.unavailable(judge.tools.broken)):
                    guest, none = small_calls(judge, problem, candidate, subject, reference, generator, workloads)
                    why = why or none
                evidence["sanitizer"] = (
                    sanitizer.not_run(why) if why or guest is None else sanitizer.check(guest, judge.tools)
                )
    return _Checked(evidence, kernels, guest)


def _resources(judge: Judge, checked: _Checked) -> dict[str, Any]:
    """Registers, shared memory and spills; what hardware counters say, or why they say nothing."""
    found: dict[str, Any] = {"kernels": checked.kernels}
    if checked.guest is not None:
        with judge.shared():
            kernels, why = counters.read(checked.guest, judge.tools.broken)
        found |= counters.resources(kernels, why)
    return found


@dataclass(frozen=True, slots=True)
class _Task:
    """What is confirmed, and against what."""

    judge: Judge
    problem: Problem
    candidate: Candidate
    champion: Candidate | None
    baseline: BaselineReport | None
    reference: Subject
    generator: torch.Generator

    def modes(self, workload: Workload) -> list[str]:
        """The Baselines that a Workload is timed against; eager alone where it is held out (nothing is compiled for
        it)."""
        if workload.held_out:
            return ["eager"]
        if self.baseline is None:
            return list(self.judge.room.modes())
        return list(dict.fromkeys(["eager", self.baseline.fastest(workload.name).mode]))


def _time(task: _Task, workload: Workload, repetitions: int) -> _Times:
    judge, modes, times = task.judge, task.modes(workload), _Times(workload)
    oracle = Oracle(task.problem, task.reference, workload.sizes, task.generator)
    bench = Bench(judge.room, workload, oracle, [], first_call_s=first_call_limit_s(task.candidate))
    try:
        with judge.alone():
            rehearsal = int(torch.randint(repetitions, (1,), generator=task.generator))
            for repetition in range(repetitions):
                with ExitStack() as fresh:
                    with judge.room.sharing.released():  # most of a confirmation is starting processes
                        bench.replace(_contenders(task, modes, oracle, workload, fresh))
                    bench.run(replace(_RULES, rehearse=repetition == rehearsal))
                    _note(times, bench, modes, task.champion is not None)
                    times.measurements.append(bench.measurement("candidate", modes, judge.floor_us(bench)))
                    bench.replace([])
    finally:
        bench.close()
    return times


def _contenders(
    task: _Task, modes: Sequence[str], oracle: Oracle, workload: Workload, fresh: ExitStack
) -> list[Contender]:
    """Fresh processes for everything but compiled Baselines, whose compiled code stays with their process.

    "again" is the Candidate once more, in another process: how far it is from itself is the A/A spread.
    """
    judge, problem = task.judge, task.problem
    suspects = {"candidate": task.candidate, "again": task.candidate}
    if task.champion is not None:
        suspects["champion"] = task.champion
    # Most of starting is waiting for the device's driver, which serves several processes at once.
    with ThreadPoolExecutor(len(suspects)) as starters:
        started = {n: starters.submit(judge.start_candidate, one, Stage.CONFIRM) for n, one in suspects.items()}
    for future in started.values():
        if future.exception() is None:
            fresh.enter_context(future.result())
    contenders: list[Contender] = []
    for name, future in started.items():
        subject = future.result()
        judge.room.keep_still(subject)
        buffers = judge.constructed(subject, oracle, problem, Stage.CONFIRM)
        plain = is_plain(suspects[name].source)
        contenders.append(Contender(name, subject, True, buffers, sampled=name == "again", plain=plain))
    for mode in modes:
        if mode == "eager":
            subject = fresh.enter_context(judge.room.fresh_comparator(problem, mode, oracle))
            contenders.append(Contender(mode, subject, suspect=False, buffers=oracle.buffers))
        else:
            contenders.append(judge.room.contender(problem, workload, mode, oracle))
    return contenders


def _note(times: _Times, bench: Bench, modes: Sequence[str], champion: bool) -> None:
    names = ["again", *modes, *(["champion"] if champion else [])]
    for name in names:
        times.log_ratios.setdefault(name, []).append(statistics.median(bench.log_ratios(name, "candidate")))
    times.resolution = max(times.resolution, bench.resolution("candidate"))
    for contender in bench.contenders:
        times.rounds.setdefault(contender.name, []).append(contender.official_us())


def _result(
    task: _Task,
    screened: Screened,
    clock: Clockwork,
    found: Sequence[_Times],
    hidden: Sequence[_Times],
    evidence: dict[str, Any],
    resources: Mapping[str, Any],
) -> Evaluation:
    logs: dict[str, list[tuple[Workload, list[float]]]] = {}
    with_champion = task.champion is not None
    for times in found:
        modes = [name for name in times.rounds if name not in ("candidate", "again", "champion")]
        fastest = min(modes, key=lambda mode: statistics.median(times.rounds[mode]))
        for against in [*modes, "fastest", *(["champion"] if with_champion else [])]:
            source = fastest if against == "fastest" else against
            logs.setdefault(against, []).append((times.workload, times.log_ratios[source]))
    against = "champion" if with_champion else "fastest"
    unseen = [(t.workload, t.log_ratios["champion" if with_champion else "eager"]) for t in hidden]
    again = [(t.workload, t.log_ratios["again"]) for t in found]
    plain = is_plain(task.candidate.source)
    verdict = _promotion(logs[against], again, unseen, [] if plain else [t.resolution for t in found])
    evidence["promote"] = verdict.pop("promote")
    evidence["confirm"] = {**verdict, "against": against, "process_pairs": PROCESS_PAIRS, "plain": plain}
    return task.judge.passed(
        task.problem,
        task.candidate,
        screened,
        clock,
        evidence,
        [_merged(times) for times in found],
        speedups(logs, len(found)),
        resources=resources,
    )


def _promotion(
    against: Sequence[tuple[Workload, list[float]]],
    again: Sequence[tuple[Workload, list[float]]],
    unseen: Sequence[tuple[Workload, list[float]]] = (),
    resolutions: Sequence[float] = (),
) -> dict[str, Any]:
    """Promote, or not: the bound must pass 1 + the largest of 1 %, what the device does to equal kernels, and what a
    child could gain by making its own harness faster, `resolutions` of each Workload, weighted as the ratios are. No
    Workload may be slower, held-out ones included, of which nothing but that is told."""
    bound = stats.lower_bound(_headline(against), _CONFIDENCE)
    spread = _spread(_headline(again))
    gains = [(workload, [math.log1p(share)]) for (workload, _), share in zip(against, resolutions, strict=False)]
    resolution = math.expm1(_headline(gains)[0]) if gains else 0.0
    threshold = 1 + max(_LEAST_GAIN, spread, resolution)
    worse = [w for w, logs in [*against, *unseen] if stats.ratio_interval(logs)[1].high < _WORST_WORKLOAD]
    return {
        "promote": bound > threshold and not worse,
        "bound": round(bound, 5),
        "threshold": round(threshold, 5),
        "aa_spread": round(spread, 5),
        "harness_share": round(resolution, 5),
        "worse_workloads": list(dict.fromkeys("a held-out workload" if w.held_out else w.name for w in worse)),
    }


def _headline(parts: Sequence[tuple[Workload, list[float]]]) -> list[float]:
    """Per repetition the weighted mean of log ratios over Workloads."""
    total = sum(workload.weight for workload, _ in parts)
    repetitions = min(len(logs) for _, logs in parts)
    return [sum(w.weight * logs[i] for w, logs in parts) / total for i in range(repetitions)]


def _spread(logs: Sequence[float]) -> float:
    """How far equal kernels seem to be apart here: their mean difference, or twice its standard error."""
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return math.expm1(max(abs(statistics.fmean(logs)), 2 * error))


def _merged(times: _Times) -> Measurement:
    """One Measurement over all repetitions; Baselines likewise."""
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
