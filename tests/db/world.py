"""A small world to test with: results as a judge would give them, and a worker that settles them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.queues import BUILD, CONTROL, PROPOSE, JobKind
from db.repositories import runs as run_reads
from db.repositories.work import jobs as job_reads
from db.tables.queue import JobRow
from db.transitions import problems, runs
from db.transitions.advance import advance
from db.transitions.work import jobs, settle
from db.views.rows import Job
from db.views.work import BuildWork, ConfirmWork, JudgeWork, ProposalResult, ProposeWork
from evaluator.types import (
    Admission,
    BaselineReport,
    BaselineTime,
    BuildReport,
    Candidate,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Language,
    Measurement,
    Problem,
    Ratio,
    Stage,
    Verdict,
    Workload,
    WorkloadFacts,
    content_hash,
)
from evolution.types import Budget, ProposalOutcome, Run, RunConfig

ALL = (CONTROL, PROPOSE, BUILD, "cpu")
DEVICE = Device(kind=DeviceKind.CPU, name="Test CPU", uuid="cpu-0")
ENVIRONMENT = Environment(python="3.11", torch="2.13", threads=1)
OTHER_THREADS = [
    {"threads": 4, "verdict": "PASSED", "reason": "right", "speedup": 3.0, "low": 2.9, "high": 3.1},
    {"threads": 8, "verdict": "INCORRECT_VALUES", "reason": "wrong"},
]
SAMPLES = (10.0, 10.5, 11.25)


def problem(source: str = "class Model: ...") -> Problem:
    return Problem(name="rmsnorm", source=source, workloads=(Workload(name="small", sizes={"rows": 4}),))


def admission(p: Problem, verdict: Verdict = Verdict.PASSED) -> Admission:
    return Admission(
        problem_hash=p.hash,
        verdict=verdict,
        reason="accepted" if verdict is Verdict.PASSED else "zeros pass this reference",
        facts=tuple(_facts(workload) for workload in p.workloads),
        device=DEVICE,
        environment=ENVIRONMENT,
    )


def _facts(workload: Workload) -> WorkloadFacts:
    shape = f"float32 [{workload.sizes.get('rows', 4)}, 64]"
    return WorkloadFacts(workload=workload.name, inputs=(shape,), outputs=(shape,), bytes_moved=32)


def _time(mode: str, us: float) -> BaselineTime:
    return BaselineTime(
        mode=mode,
        workload="small",
        clock=Clock.CALLS,
        median_us=us,
        interval_us=Interval(low=us * 0.9, high=us * 1.1),
        samples_us=(us, us + 0.5),
    )


def baseline(p: Problem) -> BaselineReport:
    return BaselineReport(
        problem_hash=p.hash,
        device=DEVICE,
        environment=ENVIRONMENT,
        times=(_time("eager", 40.0), _time("compile", 20.0)),
        duration_s=3.0,
    )


def passed(
    p: Problem, c: Candidate, speedup: float, *, stage: Stage = Stage.INTEGRITY, promote: bool = False
) -> Evaluation:
    us = 20.0 / speedup
    low, high = speedup * 0.98, speedup * 1.02
    return Evaluation(
        verdict=Verdict.PASSED,
        stage=stage,
        reason="right and timed",
        problem_hash=p.hash,
        candidate_hash=c.hash,
        evidence=_decided(promote) if stage is Stage.CONFIRM else {"seeds": 8},
        measurements=(
            Measurement(
                workload="small",
                clock=Clock.CALLS,
                samples_us=SAMPLES,
                median_us=us,
                interval_us=Interval(low=us * 0.9, high=us * 1.1),
                baselines=(_time("eager", 40.0), _time("compile", 20.0)),
            ),
        ),
        speedups=(
            Ratio(against="fastest", value=speedup, interval=Interval(low=low, high=high)),
            Ratio(against="eager", value=speedup * 2, interval=Interval(low=low * 2, high=high * 2)),
        ),
        device=DEVICE,
        environment=ENVIRONMENT,
        duration_s={"correctness": 0.5, "timing": 0.5},
    )


def _decided(promote: bool) -> dict[str, object]:
    why_not = [] if promote else ["it is slower on small at 0.840x"]
    return {"promote": promote, "confirm": {"why_not": why_not}, "other_threads": OTHER_THREADS}


def failed(p: Problem, c: Candidate, verdict: Verdict, stage: Stage = Stage.CORRECTNESS) -> Evaluation:
    return Evaluation(
        verdict=verdict,
        stage=stage,
        reason=f"it was {verdict}",
        problem_hash=p.hash,
        candidate_hash=c.hash,
        duration_s={"correctness": 0.25},
    )


def candidate_result(source: str, **extra: object) -> ProposalResult:
    return ProposalResult(
        outcome=ProposalOutcome.CANDIDATE,
        source=source,
        language=Language.CPP,
        duration_s=0.1,
        **extra,  # type: ignore[arg-type]
    )


EXHAUSTED = ProposalResult(outcome=ProposalOutcome.EXHAUSTED, detail="no more designs")


def from_list(*sources: str) -> Callable[[ProposeWork], ProposalResult]:
    """A Proposer with a fixed list of sources."""

    def propose(work: ProposeWork) -> ProposalResult:
        if work.given is not None:
            return candidate_result(work.given)
        return candidate_result(sources[work.arm_number]) if work.arm_number < len(sources) else EXHAUSTED

    return propose


@dataclass
class World:
    """A worker for every queue, with a Proposer and a judge that a test chooses.

    A source `speed=1.5` passes with that speedup; any verdict's name fails with it; a build refuses BUILD_ERROR.
    """

    engine: Engine
    propose: Callable[[ProposeWork], ProposalResult] = field(default_factory=lambda: from_list())
    promote: Callable[[ConfirmWork, float], bool] = lambda work, speedup: speedup > 1.01
    problem: Problem = field(default_factory=problem)
    done: list[Job] = field(default_factory=list)

    def start(self, budget: Budget | None = None, config: RunConfig | None = None, project: str = "default") -> Run:
        with write_session(self.engine) as s:
            stored = problems.create_problem(s, project, self.problem)
            budget, config = budget or Budget(candidates=20), config or RunConfig()
            return runs.create_run(s, project, stored.id, DeviceKind.CPU, budget, config)[0]

    def claim(self, *queues: str, worker: str = "w1", lease_s: float = 600.0) -> Job | None:
        with write_session(self.engine) as s:
            if not queues:  # asking an empty queue is the larger part of playing all the workers
                ready = set(s.scalars(select(JobRow.queue).where(JobRow.state == "ready").distinct()))
                queues = tuple(queue for queue in ALL if queue in ready)
            return jobs.claim(s, queues, worker, lease_s)

    def take(self, kind: JobKind) -> Job:
        """Work until a Job of this kind is next, and claim that."""
        for _ in range(200):
            job = self.claim()
            assert job is not None, f"no {kind} came"
            if job.kind == kind:
                return job
            self.work(job)
        raise AssertionError(f"no {kind} came")

    def run(self, run_id: str) -> Run:
        with read_session(self.engine) as s:
            return run_reads.get(s, run_id)

    def drain(self, limit: int = 2000) -> None:
        """Work until there is nothing to do."""
        for _ in range(limit):
            job = self.claim()
            if job is None:
                return
            self.work(job)
        raise AssertionError("the queue never ran dry")

    def work(self, job: Job) -> list[str]:
        self.done.append(job)
        with read_session(self.engine) as s:
            item = job_reads.payload(s, job)
        with write_session(self.engine) as s:
            match job.kind:
                case JobKind.ADVANCE:
                    return advance(s, job)
                case JobKind.ADMIT:
                    return settle.settle_admission(s, job, admission(self.problem))
                case JobKind.BASELINE:
                    return settle.settle_baseline(s, job, baseline(self.problem))
            if isinstance(item, ProposeWork):
                return settle.settle_proposal(s, job, self.propose(item))
            if isinstance(item, BuildWork):
                return settle.settle_build(s, job, self.build(item))
            if isinstance(item, JudgeWork):
                return settle.settle_judge(s, job, self.judge(item.candidate))
            assert isinstance(item, ConfirmWork)
            return settle.settle_confirm(s, job, self.confirm(item))

    def work_blindly(self, job: Job) -> None:
        """Settle a Job again, as a worker would that does not know that it lost it: nothing may come of it."""
        c = Candidate(source="speed=9", language=Language.CPP)
        with write_session(self.engine) as s:
            answers = {
                JobKind.ADMIT: lambda: settle.settle_admission(
                    s, job, admission(self.problem, Verdict.INVALID_REFERENCE)
                ),
                JobKind.BASELINE: lambda: settle.settle_baseline(s, job, baseline(self.problem)),
                JobKind.BUILD: lambda: settle.settle_build(s, job, BuildReport(candidate_hash=c.hash, signature="x")),
                JobKind.JUDGE: lambda: settle.settle_judge(s, job, passed(self.problem, c, 9.0)),
                JobKind.CONFIRM: lambda: settle.settle_confirm(s, job, passed(self.problem, c, 9.0)),
            }
            assert answers[JobKind(job.kind)]() == []

    def build(self, item: BuildWork) -> BuildReport:
        refused = item.candidate.source == Verdict.BUILD_ERROR
        return BuildReport(
            candidate_hash=item.candidate.hash,
            signature=content_hash(item.candidate.source.split("#")[0].strip()),
            evaluation=failed(item.problem, item.candidate, Verdict.BUILD_ERROR, Stage.BUILD) if refused else None,
        )

    def judge(self, c: Candidate) -> Evaluation:
        if "speed=" in c.source:
            return passed(self.problem, c, float(c.source.split("speed=")[1].split()[0]))
        return failed(self.problem, c, Verdict(c.source.split("#")[0].strip()))

    def confirm(self, item: ConfirmWork) -> Evaluation:
        speedup = float(item.candidate.source.split("speed=")[1].split()[0])
        promote = self.promote(item, speedup)
        return passed(self.problem, item.candidate, speedup, stage=Stage.CONFIRM, promote=promote)
