"""Bundles: waiting work given away in a file, and its answers, settled as a worker settles them.

A bundle claims its Jobs like a worker, with a long lease. So the rules of claims hold: budgets, quotas, fairness, one
holder for each Job, and nothing lost for good, since an expired lease returns the Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.errors import Conflict, NotFound
from db.ids import new_id
from db.queues import JobKind, Nudge, build_queue, device_queue
from db.repositories.work.jobs import job_of, judge_work, payload
from db.tables.core import AdmissionRow, BaselineRow, EvaluationRow
from db.tables.queue import BundleRow, JobRow
from db.transitions.work import devices, settle
from db.transitions.work.enqueue import retry_job
from db.transitions.work.fair_queueing import charge_actual
from db.transitions.work.jobs import claim
from db.transitions.work.locks import lock_job
from db.views.rows import Job
from db.views.work import AdmitWork, BaselineWork, BuildWork, ConfirmWork, JudgeWork
from evaluator.batch.lines import Answer, Header, Task, TaskKind, write_line
from evaluator.types import BaselineReport, Device, DeviceKind, Environment

MOST_TASKS = 1000


class Taken(StrEnum):
    """The fate of an answer: settled; returned to the queue; too late or repeated, or refused, with no effect."""

    SETTLED = "settled"
    RETURNED = "returned"
    GONE = "gone"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The fate of one answer, with the reason in words."""

    job_id: str
    outcome: Taken
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle as made: the file's text, one line for the header and one for each task."""

    id: str
    device_kind: DeviceKind
    tasks: int
    created_at: str
    expires_at: str
    text: str


def make_bundle(s: Session, kind: DeviceKind, *, limit: int, lease_s: float) -> Bundle:
    """Claim up to `limit` Jobs that wait for a device of a kind, and return them as a file. Raise Conflict for none."""
    id, moment = new_id("bndl"), now(s)
    tasks = list(_claimed(s, kind, id, limit, lease_s))
    if not tasks:
        raise Conflict(f"no work waits for a {kind.value} device")
    expires = moment + timedelta(seconds=lease_s)
    leases = {task.job_id: task.lease for task in tasks}
    s.add(BundleRow(id=id, device_kind=kind, leases=leases, created_at=moment, expires_at=expires))
    header = Header(
        bundle_id=id, device_kind=kind, tasks=len(tasks), created_at=_text(moment), expires_at=_text(expires)
    )
    return Bundle(
        id=id,
        device_kind=kind,
        tasks=len(tasks),
        created_at=header.created_at,
        expires_at=header.expires_at,
        text="\n".join([write_line(header), *map(write_line, tasks), ""]),
    )


def _text(moment: datetime) -> str:
    return iso(moment) or ""


def _claimed(s: Session, kind: DeviceKind, bundle_id: str, limit: int, lease_s: float) -> Iterator[Task]:
    for _ in range(limit):
        job = claim(s, (device_queue(kind), build_queue(kind)), bundle_id, lease_s)
        if job is None:
            return
        task = _task(s, job)
        if task is not None:
            yield task


def _task(s: Session, job: Job) -> Task | None:
    work = payload(s, job)
    parts: dict[str, object] = {}
    if isinstance(work, BuildWork | JudgeWork):  # the machine goes on from a build to the judgement
        next_one = work if isinstance(work, JudgeWork) else judge_work(s, work.evaluation_id)
        parts = {"candidate": work.candidate, "baseline": next_one.baseline, "quick": next_one.quick}
        parts["best"] = dict(next_one.best)
    elif isinstance(work, ConfirmWork):
        parts = {"candidate": work.candidate, "champion": work.champion, "baseline": work.baseline}
    elif not isinstance(work, AdmitWork | BaselineWork):
        return None
    return Task(job_id=job.id, lease=job.lease, kind=TaskKind(job.kind), problem=work.problem, **parts)  # type: ignore[arg-type]


def settle_answer(s: Session, bundle_id: str, answer: Answer) -> tuple[Collected, list[Nudge]]:
    """Settle one answer, exactly once. Raise NotFound for an unknown bundle.

    An answer that comes after its lease ended is taken while its Job waits and nobody else has claimed it.
    """
    bundle = s.get(BundleRow, bundle_id)
    if bundle is None:
        raise NotFound("bundle", bundle_id)
    if answer.bundle_id != bundle_id or bundle.leases.get(answer.job_id) != answer.lease:
        return _refused(answer, "this answer does not belong to this bundle: unknown lease"), []
    job = _reclaim(s, answer)
    if job is None:
        return _collected(answer, Taken.GONE, "settled already, or given to somebody else"), []
    if job.kind != answer.kind:
        return _refused(answer, f"the task was to {job.kind}, but the answer is for {answer.kind}"), []
    if answer.error:
        nudges = settle.fail_job(s, job, answer.error, ours=True)
        charge_actual(s, job)
        return _collected(answer, Taken.RETURNED, answer.error), nudges
    task = _task(s, job)
    if task is None:
        return _collected(answer, Taken.GONE, "its run has ended"), []
    if wrong := _mismatch(task, answer, DeviceKind(bundle.device_kind)):
        return _refused(answer, wrong), []
    if foreign := _foreign(task.baseline, answer):
        return _collected(answer, Taken.RETURNED, foreign), _put_back(s, [job], foreign)
    nudges = _settle(s, job, answer)
    _register(s, answer)
    charge_actual(s, job)
    return _collected(answer, Taken.SETTLED), nudges


def release_bundle(s: Session, bundle_id: str) -> tuple[int, list[Nudge]]:
    """Return all work of a bundle that is not answered to its queue. Raise NotFound."""
    bundle = s.get(BundleRow, bundle_id)
    if bundle is None:
        raise NotFound("bundle", bundle_id)
    jobs = list[Job]()
    for job_id, lease in sorted(bundle.leases.items()):
        row = s.get(JobRow, job_id)
        if row is not None and row.state == "claimed" and row.lease == lease:
            jobs.append(job_of(row, lease))
    return len(jobs), sorted(set(_put_back(s, jobs, "the bundle was given back")))


def _collected(answer: Answer, outcome: Taken, detail: str = "") -> Collected:
    return Collected(job_id=answer.job_id, outcome=outcome, detail=detail)


def _refused(answer: Answer, why: str) -> Collected:
    return _collected(answer, Taken.REFUSED, why)


def _reclaim(s: Session, answer: Answer) -> Job | None:
    """Return the claim of an answer: the present one, or anew of a Job that waits again."""
    row = s.scalars(
        select(JobRow)
        .where(JobRow.id == answer.job_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        return None
    if row.state == "ready":
        row.state, row.lease, row.lease_until = "claimed", answer.lease, now(s) + timedelta(minutes=1)
        row.claimed_at = row.claimed_at or now(s)
        s.flush()
    return job_of(row, answer.lease) if row.state == "claimed" and row.lease == answer.lease else None


def _put_back(s: Session, jobs: Sequence[Job], message: str) -> list[Nudge]:
    """Return Jobs to their queues, with all locks in order. They were not tried, so the attempts do not count."""
    rows = [row for job in jobs if (row := lock_job(s, job)) is not None]
    nudges = list[Nudge]()
    for row in sorted(rows, key=lambda row: row.run_id or ""):
        row.attempts -= 1
        nudges += retry_job(s, row, message)
    for job in jobs:
        charge_actual(s, job)
    return nudges


def _mismatch(task: Task, answer: Answer, kind: DeviceKind) -> str:
    """Return what shows that an answer is to another question, "" if nothing does."""
    refused = answer.build.evaluation if answer.build is not None else None
    about_problem = (answer.admission, answer.baseline, answer.evaluation, refused)
    problems = {one.problem_hash for one in about_problem if one is not None}
    candidates = {one.candidate_hash for one in (answer.evaluation, refused, answer.build) if one is not None}
    if problems - {task.problem.hash}:
        return "it is about another problem"
    if candidates and (task.candidate is None or candidates - {task.candidate.hash}):
        return "it is about another candidate"
    if any(device.kind is not kind for device, _ in _machines(answer)):
        return f"it comes from a device of another kind than {kind.value}"
    return ""


def _machines(answer: Answer) -> Iterator[tuple[Device, Environment]]:
    for one in (answer.admission, answer.baseline, answer.evaluation):
        if one is not None and one.device is not None and one.environment is not None:
            yield one.device, one.environment


def _foreign(baseline: BaselineReport | None, answer: Answer) -> str:
    """Return how the answer's machine differs from that of the Run's Baselines, "" if it does not."""
    for device, environment in _machines(answer):
        if baseline is not None and device.name != baseline.device.name:
            return f"it was timed on {device.name}, and the baselines on {baseline.device.name}"
        if baseline is not None and environment.key != baseline.environment.key:
            return "it was timed with other versions than the baselines: driver, CUDA, torch, Triton or the judge"
    return ""


def _settle(s: Session, job: Job, answer: Answer) -> list[Nudge]:
    """Settle the answer's step, and the step after it, if that waits now."""
    match answer.kind:
        case TaskKind.ADMIT:
            assert answer.admission is not None
            nudges = settle.settle_admission(s, job, answer.admission)
            if answer.baseline is not None:
                then = _next(s, JobKind.BASELINE, answer.bundle_id, _open_baselines(s, job.subject_id))
                nudges += settle.settle_baseline(s, then, answer.baseline) if then is not None else []
        case TaskKind.BASELINE:
            assert answer.baseline is not None
            nudges = settle.settle_baseline(s, job, answer.baseline)
        case TaskKind.BUILD:
            assert answer.build is not None
            nudges = settle.settle_build(s, job, answer.build)
            if answer.evaluation is not None:
                own = select(EvaluationRow.id).where(EvaluationRow.id == job.subject_id)
                then = _next(s, JobKind.JUDGE, answer.bundle_id, own)
                nudges += settle.settle_judge(s, then, answer.evaluation) if then is not None else []
        case TaskKind.JUDGE | TaskKind.CONFIRM:
            assert answer.evaluation is not None
            nudges = settle.settle_judge(s, job, answer.evaluation)
    return sorted(set(nudges))


def _next(s: Session, kind: JobKind, bundle_id: str, subjects: Select[str]) -> Job | None:
    """Claim the Job that followed from a settlement just now; None if there is none, or somebody has it.

    It never waits for a lock: it already holds those of a Problem and its Runs.
    """
    query = select(JobRow).where(JobRow.kind == kind, JobRow.state == "ready", JobRow.subject_id.in_(subjects))
    row = s.scalars(query.order_by(JobRow.id.desc()).limit(1).with_for_update(skip_locked=True)).one_or_none()
    if row is None:
        return None
    lease = new_id("lease")
    row.state, row.lease, row.attempts = "claimed", lease, row.attempts + 1
    row.claimed_at, row.lease_until, row.worker = now(s), now(s) + timedelta(minutes=1), bundle_id
    s.flush()
    return job_of(row, lease)


def _open_baselines(s: Session, admission_id: str) -> Select[str]:
    admission = s.get_one(AdmissionRow, admission_id)
    return select(BaselineRow.id).where(
        BaselineRow.problem_id == admission.problem_id,
        BaselineRow.device_kind == admission.device_kind,
        BaselineRow.state == "open",
    )


def _register(s: Session, answer: Answer) -> None:
    """Record the device, so that its cached results count as those of a device that is present."""
    isolation = next((one.isolation for one in (answer.evaluation, answer.admission) if one is not None), None)
    for device, environment in _machines(answer):
        devices.register(s, device, environment, isolation or ())
        return
