"""Profile a Candidate: kernels with their times and resources on a GPU, functions on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.child.protocol.layout import LayoutError
from evaluator.clean import clean
from evaluator.errors import ChildError, ChildFault, Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.rejections import rejection
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import screen
from evaluator.stages.candidate_children import construct
from evaluator.stages.judge import Judge
from evaluator.stages.stage_clock import first_call_limit_s
from evaluator.stages.time_candidate import baseline_contender, copy_floor_us
from evaluator.stages.trial import secret_generator
from evaluator.subject import Subject
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.tools import counters
from evaluator.tools.counters import KernelCounters
from evaluator.tools.target_application import TargetApplication, TooLarge
from evaluator.types import Candidate, Device, DeviceKind, Environment, Interval, Problem, Stage, Verdict, Workload
from evaluator.units import time_text

COUNTED = (DeviceKind.CUDA,)
_CALLS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel or function: its share of a call, its time, and further `facts`."""

    name: str
    share: float
    time_us: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReport:
    """The profile of one Workload.

    `call_us` is the judge's own time of a call. `compiled` lists registers, spills and shared memory of the Candidate's
    kernels. `counters` has hardware counters if Nsight Compute can read them; else a note says why not.
    Names and shapes on a GPU are the child's claims.
    """

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
    """Time a Candidate on one Workload (by name; by default the first shown one) and profile it.

    Its timed outputs are verified as in any timing. Raises Rejection if it fails before, and EvaluatorError.
    """
    return judge.with_retries(problem, lambda: _profile(judge, problem, candidate, workload))


def _profile(judge: Judge, problem: Problem, candidate: Candidate, workload: str | None) -> ProfileReport:
    screen(problem, candidate)
    chosen = _chosen(problem, judge.backend.kind, workload)
    session = judge.session
    with judge.children.start(candidate, Stage.PROFILE) as subject, session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, chosen.sizes, secret_generator())
        loaded = construct(subject, oracle, problem, Stage.PROFILE)
        contender = Contender(
            "candidate",
            subject,
            suspect=True,
            buffers=loaded.buffers,
            parameters=loaded.parameters,
            plain=is_restricted(candidate.source),
        )
        comparators = []
        if judge.backend.kind is DeviceKind.CUDA:  # to subtract the usual cost of a graph's first replay
            comparators = [baseline_contender(session, problem, chosen, "eager", oracle)]
        bench = Bench(
            session, chosen, oracle, [contender, *comparators],
            protocol=judge.protocol, first_call_s=first_call_limit_s(candidate),
        )  # fmt: skip
        try:
            with session.exclusive():
                bench.run(judge.protocol.profile)
                seen = bench.sample_functions("candidate", judge.protocol.sampling)
                call_us, floor_us = contender.official_us(), copy_floor_us(session.backend, bench.bytes_moved)
                bench.close()
                parts, notes = _parts(subject, oracle, seen, call_us)
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


def _parts(subject: Subject, oracle: Oracle, seen: Mapping[str, int], call_us: float) -> tuple[list[Part], list[str]]:
    if subject.backend.kind is DeviceKind.CPU:
        total = sum(seen.values())
        found = sorted(seen.items(), key=lambda pair: -pair[1])[:40]
        parts = [
            Part(name=place, share=n / total, time_us=call_us * n / total, facts={"seen": n}) for place, n in found
        ]
        return parts, [f"the process was sampled {total} times during timed rounds, harness included"]
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
    return parts, [
        f"kernel times are the profiler's, over {_CALLS} calls with warm caches: {time_text(total_us)} in all"
    ]


def _counters(
    judge: Judge, problem: Problem, candidate: Candidate, subject: Subject, oracle: Oracle
) -> tuple[list[KernelCounters], list[str]]:
    """Return the hardware counters of one call, or the reason why there are none."""
    if judge.backend.kind not in COUNTED:
        return [], []
    application = TargetApplication.of(problem, candidate, judge.device, judge.children.files(candidate))
    why = counters.unavailable(judge.tool_history.broken)
    found: list[KernelCounters] = []
    if not why:
        try:
            application.add("the profiled call", oracle, subject)
            found, why = counters.read(application, judge.tool_history.broken)
        except (ChildFault, LayoutError, TooLarge) as fault:
            why = f"no inputs for it: {fault}"
    return found, [] if found else [f"no hardware counters: {why}"]


def _compiled(subject: Subject) -> Sequence[Mapping[str, Any]]:
    try:
        return [clean(kernel) for kernel in subject.kernels()]
    except (ChildFault, LayoutError):
        return []


def render(report: ProfileReport) -> str:
    """Return the report as text."""
    low, high = report.interval_us.low, report.interval_us.high
    lines = [f"{report.workload}: {time_text(report.call_us)} a call ({time_text(low)} to {time_text(high)})"]
    if report.floor_us is not None:
        share = min(1.0, report.floor_us / report.call_us)
        lines.append(
            f"  {100 * share:.0f} % of the memory roofline ({time_text(report.floor_us)} at the rate of a copy)"
        )
    for part in report.parts[:20]:
        facts = ", ".join(f"{key} {value}" for key, value in part.facts.items())
        lines.append(f"  {part.share:6.1%} {part.time_us:10.2f} us  {part.name[:100]}  {facts}")
    for kernel in report.compiled:
        lines.append("  compiled: " + ", ".join(f"{key} {value}" for key, value in kernel.items() if value is not None))
    lines += [f"  counted: {kernel.text}" for kernel in report.counters]
    return "\n".join([*lines, *(f"  {note}" for note in report.notes)])
