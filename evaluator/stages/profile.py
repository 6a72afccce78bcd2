"""Where a Candidate's time goes: kernels with their time and what they need on a GPU, functions on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.child.protocol.layout import LayoutError
from evaluator.clean import clean
from evaluator.errors import ChildError, ChildFault, Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.screening.screen import screen
from evaluator.stages.judge import Judge, secret_generator
from evaluator.stages.stage_clock import first_call_limit_s
from evaluator.subject import Subject, rejection
from evaluator.timing.bench import Bench, Rules, SamplingPlan
from evaluator.timing.contender import Contender
from evaluator.tools import counters
from evaluator.tools.counters import KernelCounters
from evaluator.tools.guest import Guest, TooLarge
from evaluator.types import Candidate, Device, DeviceKind, Environment, Interval, Problem, Stage, Verdict, Workload

COUNTED = (DeviceKind.CUDA,)
_RULES = Rules(least_pairs=4, most_pairs=6)
_LOOKS, _CALLS = SamplingPlan(span_s=3.0, most_samples=3000), 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel or function: its share of a call and its time there; `facts` are what else is known of it."""

    name: str
    share: float
    time_us: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReport:
    """Of one Workload. `call_us` is the judge's own time of a call; `compiled` lists registers, spills and shared
    memory of what the Candidate compiled, `counters` what the hardware counted, where Nsight Compute can read that (a
    note says why not); names and shapes on a GPU are the child's claims."""

    problem_hash: str
    candidate_hash: str
    workload: str
    device: Device
    environment: Environment
    call_us: float
    interval_us: Interval
    floor_us: float | None
    parts: tuple[Part, ...]
    compiled: tuple[Mapping[str, Any], ...] = ()
    counters: tuple[KernelCounters, ...] = ()
    notes: tuple[str, ...] = ()


def profile(judge: Judge, problem: Problem, candidate: Candidate, workload: str | None = None) -> ProfileReport:
    """Time a Candidate on one Workload (by name; else the first that is shown) and say where the time goes.

    Its timed outputs are verified like any other's. Raises Rejection where it does not get that far, EvaluatorError.
    """
    return judge.enduring(problem, lambda: _profile(judge, problem, candidate, workload))


def _profile(judge: Judge, problem: Problem, candidate: Candidate, workload: str | None) -> ProfileReport:
    screen(problem, candidate)
    chosen = _chosen(problem, judge.backend.kind, workload)
    with judge.start_candidate(candidate, Stage.PROFILE) as subject, judge.room.reference(problem) as reference:
        oracle = Oracle(problem, reference, chosen.sizes, secret_generator())
        buffers = judge.constructed(subject, oracle, problem, Stage.PROFILE)
        contender = Contender("candidate", subject, suspect=True, buffers=buffers)
        beside = []
        if judge.backend.kind is DeviceKind.CUDA:  # what a graph's first replay costs anybody is taken off there
            beside = [judge.room.contender(problem, chosen, "eager", oracle)]
        bench = Bench(judge.room, chosen, oracle, [contender, *beside], first_call_s=first_call_limit_s(candidate))
        try:
            with judge.alone():
                bench.run(_RULES)
                seen = bench.sample_functions("candidate", _LOOKS)
                call_us, floor_us = contender.official_us(), judge.floor_us(bench)
                bench.close()
                parts, notes = _parts(judge, subject, oracle, seen, call_us)
                counted, more = _counters(judge, problem, candidate, subject, oracle)
        finally:
            bench.close()
        compiled = _compiled(subject)
    return ProfileReport(
        problem_hash=problem.hash,
        candidate_hash=candidate.hash,
        workload=chosen.name,
        device=judge.device,
        environment=judge.environment,
        call_us=call_us,
        interval_us=contender.interval_us(),
        floor_us=floor_us,
        parts=tuple(parts),
        compiled=tuple(compiled),
        counters=tuple(counted),
        notes=(*notes, *more),
    )


def _chosen(problem: Problem, kind: DeviceKind, name: str | None) -> Workload:
    shown = [w for w in problem.workloads_for(kind) if not w.held_out]
    found = next((w for w in shown if name in (None, w.name)), None)
    if found is None:
        known = ", ".join(w.name for w in shown) or "none"
        raise Rejection(Verdict.INVALID_REFERENCE, Stage.PROFILE, f"no workload {name!r} is shown on {kind}: {known}")
    return found


def _parts(
    judge: Judge, subject: Subject, oracle: Oracle, seen: Mapping[str, int], call_us: float
) -> tuple[list[Part], list[str]]:
    if judge.backend.kind is DeviceKind.CPU:
        total = sum(seen.values())
        found = sorted(seen.items(), key=lambda pair: -pair[1])[:40]
        parts = [
            Part(name=place, share=n / total, time_us=call_us * n / total, facts={"seen": n}) for place, n in found
        ]
        return parts, [f"the process was looked at {total} times during timed rounds, harness included"]
    arguments = oracle.inputs()
    try:
        claims = subject.profile(arguments.tree, arguments.tensors, calls=_CALLS, timeout_s=60.0)
    except ChildError as error:
        return [], [f"torch's profiler does not work in the cage here: {error}"[:300]]
    except (ChildFault, LayoutError) as fault:
        raise rejection(fault, Stage.PROFILE, "profiled") from fault
    total_us = sum(one["time_us"] for one in claims) or 1.0
    parts = [
        Part(
            name=str(one.pop("name", "?"))[:200],
            time_us=(time_us := one.pop("time_us")),
            share=time_us / total_us,
            facts=clean(one),
        )
        for one in claims
    ]
    return parts, [f"kernel times are the profiler's, over {_CALLS} calls with warm caches: {total_us:.1f} us in all"]


def _counters(
    judge: Judge, problem: Problem, candidate: Candidate, subject: Subject, oracle: Oracle
) -> tuple[list[KernelCounters], list[str]]:
    """What the hardware counts in one call; or why nothing."""
    if judge.backend.kind not in COUNTED:
        return [], []
    guest = Guest.of(judge, problem, candidate)
    why = counters.unavailable(judge.tools.broken)
    found: list[KernelCounters] = []
    if not why:
        try:
            guest.add("the profiled call", oracle, subject)
            found, why = counters.read(guest, judge.tools.broken)
        except (ChildFault, LayoutError, TooLarge) as fault:
            why = f"no inputs for it: {fault}"
    return found, [] if found else [f"no hardware counters: {why}"]


def _compiled(subject: Subject) -> Sequence[Mapping[str, Any]]:
    try:
        return [clean(kernel) for kernel in subject.kernels()]
    except (ChildFault, LayoutError):
        return []


def render(report: ProfileReport) -> str:
    """The report for a person."""
    low, high = report.interval_us.low, report.interval_us.high
    lines = [f"{report.workload}: {report.call_us:.1f} us a call ({low:.1f} to {high:.1f})"]
    if report.floor_us is not None:
        share = min(1.0, report.floor_us / report.call_us)
        lines.append(f"  {share:.0%} of what memory allows ({report.floor_us:.1f} us at the speed of a copy)")
    for part in report.parts[:20]:
        facts = ", ".join(f"{key} {value}" for key, value in part.facts.items())
        lines.append(f"  {part.share:6.1%} {part.time_us:10.2f} us  {part.name[:100]}  {facts}")
    for kernel in report.compiled:
        lines.append("  compiled: " + ", ".join(f"{key} {value}" for key, value in kernel.items() if value is not None))
    lines += [f"  counted: {kernel.text}" for kernel in report.counters]
    return "\n".join([*lines, *(f"  {note}" for note in report.notes)])
