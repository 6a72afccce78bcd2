"""Confirm a Candidate: new processes, new seeds, held-out Workloads, a fixed length, against Champion and Baselines.

A promotion takes the whole length, so chance cannot choose the moment at which times are compared. What is surely
slower after half of it cannot be promoted any more, and gets no more time (ADR 21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evaluator.devices.cpu import CpuBackend
from evaluator.errors import Rejection
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import Screened, screen
from evaluator.stages import outcomes
from evaluator.stages.candidate_children import compiled_kernels
from evaluator.stages.confirm_times import (
    CHAMPION,
    ConfirmTimer,
    RepeatedTimes,
    Spent,
    Tell,
    log_ratios_by_comparator,
    suspects_of,
)
from evaluator.stages.fresh_processes import AGAIN, EAGER, FreshProcesses
from evaluator.stages.judge import Judge
from evaluator.stages.outcomes import Origin
from evaluator.stages.promotion import Decision, decide, unchecked_in_words
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.timing import known_times
from evaluator.timing.protocol import Promotion, TimingProtocol
from evaluator.timing.speedups import speedups
from evaluator.tools import counters, sanitizer
from evaluator.tools.target_application import TargetApplication, add_small_calls
from evaluator.types import BaselineReport, Candidate, DeviceKind, Evaluation, Problem, Stage, Verdict, Workload


def confirm(
    judge: Judge,
    problem: Problem,
    candidate: Candidate,
    champion: Candidate | None = None,
    baseline: BaselineReport | None = None,
) -> Evaluation:
    """Judge again in new processes and decide about promotion. Never raises for a fault of the Candidate.

    `evidence["promote"]` has the decision; `evidence["confirm"]` has the `bound` (one-sided 99.9 %), `threshold`,
    `against`, the A/A spread, and `why_not`: a line for each rule that forbids the promotion.
    """
    trial = Trial(problem=problem, candidate=candidate, kind=judge.backend.kind, baseline=baseline, champion=champion)
    return judge.evaluate(trial, lambda: judge.with_retries(problem, lambda: _confirm(judge, trial)))


def _confirm(judge: Judge, trial: Trial) -> Evaluation:
    with trial.clock.during(Stage.SCREEN):
        screened = screen(trial.problem, trial.candidate)
    protocol, spent = judge.protocol, Spent()
    with (
        trial.clock.during(Stage.CONFIRM),
        judge.session.references.start(trial.problem) as reference,
        FreshProcesses(
            judge.session,
            judge.children,
            trial.problem,
            suspects_of(trial),
            protocol.process_pairs,
            eager_sets=_eager_sets(trial, protocol),
        ) as processes,
    ):
        is_built = judge.children.built.get(trial.candidate) is not None  # else every process would compile
        with spent.on("check"):
            judge.tell(stage="confirm", step="check")
            checked = _check(judge, trial, reference, spent, processes.begin if is_built else lambda: None)
        if not trial.is_timed:
            raise Rejection(Verdict.INVALID_SUBMISSION, Stage.CONFIRM, "this language is not timed on this device")
        with spent.on("start"):
            processes.begin()
            processes.wait()
        brief = trial.kind is DeviceKind.CUDA and judge.surely_faster(trial)
        timer = ConfirmTimer(
            judge.session, trial, reference, protocol, processes, spent, _teller(judge, trial), brief=brief
        )
        found, hopeless = _time_shown(trial, timer, protocol)
        promising = not hopeless and _decision(trial, found, [], protocol.promotion).promote
        for times in found if promising else ():  # else nothing turns on what could not be checked
            timer.look_again(times)
        most = protocol.process_pairs if promising else 0
        held_out = [] if hopeless else trial.held_out
        hidden = [timer.run(workload, protocol.hidden_pairs, most=most) for workload in held_out]
    evidence = {**checked.evidence, "seconds": spent.rounded(), "judge_has_own_core": _has_own_core(judge)}
    return _result(trial, judge.origin, screened, found, hidden, evidence, checked.resources, protocol.promotion)


def _time_shown(trial: Trial, timer: ConfirmTimer, protocol: TimingProtocol) -> tuple[list[RepeatedTimes], bool]:
    """Time the shown Workloads. Return the times, and whether the Candidate is surely slower on one of them: the later
    ones are then timed for the record alone. Raises Rejection, ComparatorFailed."""
    # Of several Workloads one may be a little slower.
    least = protocol.promotion.worst_workload if len(trial.shown) > 1 else 1.0
    found, hopeless = [], False
    for index, workload in enumerate(trial.shown):
        repetitions = protocol.first_pairs if hopeless else protocol.process_pairs
        # A profiler takes seconds to start, and decides nothing: it looks at the last Workload.
        last = index == len(trial.shown) - 1
        times = timer.run(workload, repetitions, hopeless_below=least, profile=last and not hopeless)
        hopeless = hopeless or times.ended_early or times.is_surely_below(least)
        found.append(times)
    return found, hopeless


def _eager_sets(trial: Trial, protocol: TimingProtocol) -> int:
    """Return how many repetitions are likely to time eager: the first ones, if another Baseline is much faster."""
    known = trial.baseline
    if known is None:
        return protocol.process_pairs
    eager_us = {one.workload: one.median_us for one in known.times if one.mode == EAGER}
    shares = [eager_us.get(one.name, 0.0) / known.fastest(one.name).median_us for one in trial.shown]
    return protocol.first_pairs if min(shares) > protocol.much_slower else protocol.process_pairs


def _has_own_core(judge: Judge) -> bool:
    """Return False if kernels have as many threads as there are cores: then none is left to look at single calls."""
    backend = judge.backend
    return not isinstance(backend, CpuBackend) or backend.threads == 1 or backend.judge_has_own_core


def _teller(judge: Judge, trial: Trial) -> Tell:
    """Return the function that tells followers which repetition comes. It does not name held-out Workloads."""
    protocol, order = judge.protocol, [*trial.shown, *trial.held_out]
    pairs = {one.name: protocol.hidden_pairs if one.held_out else protocol.process_pairs for one in order}
    total, before, sofar = sum(pairs.values()), {}, 0
    for one in order:
        before[one.name], sofar = sofar, sofar + pairs[one.name]

    def tell(workload: Workload, repetition: int) -> None:
        name = "" if workload.held_out else workload.name
        judge.tell(
            stage="confirm", step="time", workload=name, pair=repetition + 1, pairs=pairs[workload.name],
            done=before[workload.name] + repetition, total=total,
        )  # fmt: skip

    return tell


@dataclass(frozen=True, slots=True)
class _Checked:
    """The results of a passed check. `resources` has the kernels' registers, shared memory and spills, and counters."""

    evidence: dict[str, Any]
    resources: dict[str, Any]


def _check(judge: Judge, trial: Trial, reference: Subject, spent: Spent, begin: Callable[[], None]) -> _Checked:
    """Check correctness again with new seeds, held-out Workloads included, and run tools beside that.

    `begin` starts the other processes, once those that the check waits for are there: many that start at once take
    several times as long each.
    """
    # What compiles at the first call is there only after a check.
    early = trial.kind in sanitizer.DEVICES and judge.check_stage.has_passed(trial)
    with (
        ThreadPoolExecutor(1, thread_name_prefix="tools") as beside,
        _started(judge, trial, 2 if early else 1) as (subject, *others),
    ):
        begin()
        tools = None
        for other in others:
            tools = _begin_tools(beside, judge, trial, reference, other)
            judge.session.children.end(other)
        checker = judge.check_stage.checker(trial, reference, second=True)
        report = judge.check_stage.check_again(trial, subject, checker, Stage.CONFIRM)
        evidence: dict[str, Any] = {"correctness": report.evidence()}
        resources: dict[str, Any] = {"kernels": compiled_kernels(subject, Stage.CONFIRM)}
        if trial.kind in sanitizer.DEVICES:
            with spent.on("tools"):  # a part of the check's seconds
                if tools is None:
                    with judge.children.start(trial.candidate, Stage.CONFIRM) as other:
                        tools = _begin_tools(beside, judge, trial, reference, other)
                evidence["sanitizer"], read = tools.result()
            resources |= read
    return _Checked(evidence, resources)


_Found = tuple[dict[str, Any], dict[str, Any]]


@contextmanager
def _started(judge: Judge, trial: Trial, count: int) -> Iterator[list[Subject]]:
    """Yield `count` children of the Candidate, started at the same time. Raises Rejection."""
    judge.session.pools.for_candidate(trial.adapter)  # here, since a pool ends with the thread that started it
    with ThreadPoolExecutor(count, thread_name_prefix="starts-children") as starters:
        starting = [starters.submit(judge.children.start, trial.candidate, Stage.CONFIRM) for _ in range(count)]
    try:
        yield [one.result() for one in starting]
    finally:
        for one in starting:
            if one.exception() is None:
                one.result().close()


def _begin_tools(
    beside: ThreadPoolExecutor, judge: Judge, trial: Trial, reference: Subject, subject: Subject
) -> Future[_Found]:
    """Run tools in a thread. A `subject` of its own constructs the module, since that may end it. Raises Rejection."""
    why = sanitizer.unavailable(trial.candidate, judge.tool_history)
    if why and counters.unavailable(judge.tool_history.broken):
        return beside.submit(_run_tools, judge, None, why)
    with judge.session.shared():
        application, why = _application(judge, trial, subject, reference, why)
    return beside.submit(_run_tools, judge, application, why)


def _application(
    judge: Judge, trial: Trial, subject: Subject, reference: Subject, why: str
) -> tuple[TargetApplication | None, str]:
    """Return the application for tools, None if it cannot be made, and why compute-sanitizer cannot run, or ""."""
    built = judge.children.files(trial.candidate)
    application = TargetApplication.of(trial.problem, trial.candidate, judge.device, built)
    no_calls = add_small_calls(application, subject, reference, trial.generator, trial.workloads)
    return (None, why or no_calls) if no_calls else (application, why)


def _run_tools(judge: Judge, application: TargetApplication | None, why_not: str) -> _Found:
    """Run compute-sanitizer and read the hardware counters, beside the check: both mostly wait for their tool.

    Return the evidence of the one and the resources of the other. Raises Rejection.
    """
    if application is None:
        return sanitizer.not_run(why_not), {}
    with judge.session.sharing.in_background(), ThreadPoolExecutor(1, thread_name_prefix="counters") as beside:
        reading = beside.submit(counters.read, application, judge.tool_history.broken)
        found = sanitizer.not_run(why_not) if why_not else sanitizer.check(application, judge.tool_history)
        kernels, why = reading.result()
    return found, counters.resources(kernels, why)


def _against(trial: Trial) -> str:
    return CHAMPION if trial.champion is not None else "fastest"


def _decision(
    trial: Trial, found: Sequence[RepeatedTimes], hidden: Sequence[RepeatedTimes], promotion: Promotion
) -> Decision:
    """Decide about promotion by the times alone."""
    on_held_out = [(t.workload, t.log_ratios[CHAMPION if trial.champion is not None else EAGER]) for t in hidden]
    again = [(t.workload, t.log_ratios[AGAIN]) for t in found]
    resolutions = [] if is_restricted(trial.candidate.source) else [times.resolution for times in found]
    name = "the champion" if trial.champion is not None else "the fastest baseline"
    logs = log_ratios_by_comparator(found)[_against(trial)]
    return decide(logs, again, on_held_out, resolutions, promotion, name=name)


def _unchecked(trial: Trial, times: RepeatedTimes) -> dict[str, str]:
    """Return the checks of a Workload that could not look, with the reasons: nothing is promoted without them."""
    found = dict(times.unchecked)
    # A GPU may have no room for plain loops.
    if trial.kind is DeviceKind.CPU and not times.opinion.is_about(times.fastest):
        found["plain_loop"] = f"{times.fastest} failed there"
    return found


def _result(
    trial: Trial,
    origin: Origin,
    screened: Screened,
    found: Sequence[RepeatedTimes],
    hidden: Sequence[RepeatedTimes],
    evidence: dict[str, Any],
    resources: Mapping[str, Any],
    promotion: Promotion,
) -> Evaluation:
    evidence["third_opinion"] = {times.workload.name: times.opinion.told(times.official_us()) for times in found}
    for times in found:
        times.heed()
    known = {t.workload.name: t.heed_known(trial.known_us(t.workload, t.measurements[0].clock)) for t in found}
    if any(known.values()):
        evidence[known_times.NAME] = {name: told for name, told in known.items() if told}
    plain = is_restricted(trial.candidate.source)
    decision = _decision(trial, found, hidden, promotion)
    if not (plain or evidence["judge_has_own_core"]):
        decision = decision.refused(
            "with a thread on every core nobody can check that it does its work in each call: use fewer threads, or a"
            " file that cannot reach the harness"
        )
    if early := [times.workload.name for times in found if times.ended_early]:
        decision = decision.refused(
            f"it was surely slower on {', '.join(early)} before its time was over, and got no more"
        )
    unchecked = {times.workload.name: _unchecked(trial, times) for times in found}
    for why in unchecked_in_words(unchecked):
        decision = decision.refused(why)
    if any(unchecked.values()):
        evidence["unchecked"] = unchecked
    evidence["promote"] = decision.promote
    pairs = min(len(times.measurements) for times in found)
    evidence["confirm"] = {**decision.evidence(), "against": _against(trial), "process_pairs": pairs, "plain": plain}
    note = "" if decision.promote else f"not promoted: {'; '.join(decision.why_not)}"
    measurements = [times.merged() for times in found]
    ratios = speedups(log_ratios_by_comparator(found), len(found))
    return outcomes.passed(trial, origin, screened, evidence, measurements, ratios, resources=resources, note=note)
