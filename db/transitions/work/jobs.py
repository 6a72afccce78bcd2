"""The queue: claim, heartbeat, sweep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Executable, ScalarSelect, bindparam, func, or_, select, union, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.queues import BUILD, BUILD_CUDA, CONTROL, PROPOSE, JobKind, Nudge
from db.repositories.work.jobs import job_of
from db.tables.core import AdmissionRow, BaselineRow, CandidateRow, EvaluationRow, ProposalRow, RunRow
from db.tables.queue import ALIVE, JobRow
from db.transitions.access.projects import spent
from db.transitions.admission import ATTEMPTS
from db.transitions.begin import progress
from db.transitions.over_budget import drop_unstarted, exhausted_limit
from db.transitions.reservations import Lost, charge_lost, count_lost
from db.transitions.runs import pause_run
from db.transitions.work.enqueue import enqueue_advance, retry_job
from db.transitions.work.failures import BROKEN_OFF, drop, give_up, lost_words
from db.transitions.work.fair_queueing import charge_estimate, must_stay_free, projects_by_service
from db.transitions.work.locks import lock_problems, lock_run, lock_runs
from db.views.rows import Job
from evolution.types import RunStatus

RENUDGE_S = 5.0
_UNTIMED = (
    select(BaselineRow.id)
    .join(RunRow, RunRow.baseline_id == BaselineRow.id)
    .where(RunRow.id == JobRow.run_id, BaselineRow.state == "open")
    .exists()
)
"""A Candidate is judged against a Baseline, so its Job waits for them."""
_GOING = (RunStatus.QUEUED, RunStatus.ADMITTING, RunStatus.RUNNING)
_SWEEP_LOCK = 7_713_002
_SWEEP_BATCH = 200


def claim(s: Session, queues: Sequence[str], worker: str, lease_s: float) -> Job | None:
    """Take the next ready Job of these queues for `lease_s` seconds; None where this worker gets none now.

    Fair over projects (see `fair_queueing`). Within one, urgent Jobs come first, then the oldest. Confirmations are
    urgent, and so is timing a Run's best again: later work is measured against their outcomes. One conditional UPDATE,
    so that two workers never get the same Job. Commit before working on it. A Job beyond its Run's budget is dropped
    here, before it costs anything; a Job beyond its project's quota waits, and so does a judgement until Baselines are
    timed. Of several queues the first with such a Job is served; one that has only further looks at Baselines, which
    idle devices take, comes last.
    """
    for queue in _in_turn(s, queues):
        if (row := _claim(s, queue, worker, lease_s)) is not None:
            break
    else:
        return None
    if row.kind == JobKind.ADMIT:
        for run in lock_runs(s, RunRow.admission_id == row.subject_id, RunRow.status == RunStatus.QUEUED):
            progress(s, run, RunStatus.ADMITTING)
    charge_estimate(s, row.id, row.queue, row.project_id)
    return job_of(row, row.lease or "")


def _in_turn(s: Session, queues: Sequence[str]) -> Sequence[str]:
    """Return the queues in their order, those last in which nothing is ready but further looks at Baselines."""
    if len(queues) == 1:
        return queues
    no_look = or_(JobRow.kind != JobKind.BASELINE, JobRow.ordinal == 1)
    waiting = [
        queue
        for queue in queues
        if s.scalar(select(JobRow.id).where(JobRow.queue == queue, JobRow.state == "ready", no_look).limit(1))
    ]
    return [*waiting, *(queue for queue in queues if queue not in waiting)]


def _claim(s: Session, queue: str, worker: str, lease_s: float) -> Any:
    """Return the row claimed of one queue, or None: projects in order, until a Job is left that no worker took."""
    for project_id in projects_by_service(s, queue):
        if queue not in (CONTROL, PROPOSE, BUILD, BUILD_CUDA) and must_stay_free(s, queue, project_id, worker):
            return None
        while (row := _take_next(s, queue, project_id, worker, lease_s)) is not None:
            limit = exhausted_limit(s, row.run_id, row.kind)
            if limit is None:
                return row
            drop_unstarted(s, row.id, limit)
    return None


def _take_next(s: Session, queue: str, project_id: str, worker: str, lease_s: float) -> Any:
    moment = now(s)
    named = {"of_queue": queue, "of_project": project_id, "by": worker, "at": moment}
    for take in _takes(s.get_bind().dialect.name):
        row = s.execute(
            take, {**named, "by_lease": new_id("lease"), "until": moment + timedelta(seconds=lease_s)}
        ).one_or_none()
        if row is not None:
            return row
    return None


@cache
def _takes(dialect: str) -> list[Executable]:
    """Return the statements that claim one of a project's Jobs, the first choice first, made once: to make them takes
    longer than to run them."""
    return [
        update(JobRow)
        .where(JobRow.id == pick, JobRow.state == "ready")
        .values(
            state="claimed",
            attempts=JobRow.attempts + 1,
            lease=bindparam("by_lease"),
            lease_until=bindparam("until"),
            worker=bindparam("by"),
            claimed_at=bindparam("at"),
        )
        .returning(
            JobRow.id, JobRow.kind, JobRow.queue, JobRow.run_id, JobRow.subject_id, JobRow.project_id,
            JobRow.attempts, JobRow.lease, JobRow.request_id,
        )
        .execution_options(synchronize_session=False)
        for pick in _picks(dialect)
    ]  # fmt: skip


def _picks(dialect: str) -> list[ScalarSelect[str]]:
    """Return a project's oldest urgent Job, then its oldest ready Job; an index finds each.

    Where that is a judgement or a build, the Run's Candidate that was asked for first comes first, and not the one that
    was answered or built first: proposers give their best designs first, and these may take longest.
    """
    ready = (
        JobRow.queue == bindparam("of_queue"), JobRow.state == "ready", JobRow.project_id == bindparam("of_project")
    )  # fmt: skip
    oldest = or_(JobRow.kind != JobKind.JUDGE, ~_UNTIMED)
    picks = [select(JobRow.id).where(*ready, one).order_by(JobRow.id) for one in (JobRow.urgent, oldest)]
    of_candidate = JobRow.kind.in_((JobKind.JUDGE, JobKind.BUILD))
    run = select(JobRow.run_id).where(JobRow.id == picks[1].limit(1).scalar_subquery(), of_candidate).scalar_subquery()
    asked_for = (
        select(ProposalRow.number)
        .join(CandidateRow, CandidateRow.proposal_id == ProposalRow.id)
        .join(EvaluationRow, EvaluationRow.candidate_id == CandidateRow.id)
        .where(EvaluationRow.id == JobRow.subject_id)
        .scalar_subquery()
    )
    waiting = select(JobRow.id).where(*ready, of_candidate, JobRow.run_id == run)
    picks.insert(1, waiting.order_by(asked_for, JobRow.id))
    picks = [query.limit(1) for query in picks]
    if dialect == "postgresql":
        picks = [query.with_for_update(skip_locked=True) for query in picks]
    return [query.scalar_subquery() for query in picks]


def heartbeat(s: Session, job: Job, lease_s: float) -> bool:
    """Extend the lease to `lease_s` seconds from now. False: it was lost, or the Run cancelled: stop working.

    A Proposal of a cancelled Run goes on to its end, since its answer may have been paid for.
    """
    run_cancelled = select(RunRow.id).where(RunRow.id == JobRow.run_id, RunRow.status == RunStatus.CANCELLED).exists()
    changed = s.execute(
        update(JobRow)
        .where(JobRow.id == job.id, JobRow.lease == job.lease, JobRow.state == "claimed")
        .where(JobRow.kind.not_in(BROKEN_OFF) | ~run_cancelled)
        .values(lease_until=now(s) + timedelta(seconds=lease_s))
        .execution_options(synchronize_session=False)
    )
    assert isinstance(changed, CursorResult)
    return changed.rowcount == 1


def sweep(s: Session) -> list[Nudge]:
    """Retry expired leases, nudge again for Jobs that stayed ready for 5 s, wake Runs that need a decision.

    An expired Job is ready again, or dead after its third attempt. A Run needs a decision when its wall budget has
    ended, or when it is running without a Job (after a crash of ours). Runs of projects over a quota are paused, and
    what another project's Run waits for goes to that one. Call it every few seconds, from anywhere.
    """
    if s.get_bind().dialect.name == "postgresql" and not s.scalar(select(func.pg_try_advisory_xact_lock(_SWEEP_LOCK))):
        return []
    _hand_over(s)
    nudges, lost = _expired(s)
    nudges += _wake(s)
    _hold_spent(s)
    moment = now(s)
    stale = s.scalars(
        update(JobRow)
        .where(ALIVE, JobRow.state == "ready", JobRow.nudged_at < moment - timedelta(seconds=RENUDGE_S))
        .values(nudged_at=moment)
        .returning(JobRow.queue)
        .execution_options(synchronize_session=False)
    )
    renudged = sorted({*nudges, *stale})
    charge_lost(s, lost)
    return renudged


def _expired(s: Session) -> tuple[list[Nudge], list[Lost | None]]:
    rows = s.scalars(
        select(JobRow)
        .where(ALIVE, JobRow.state == "claimed", JobRow.lease_until < now(s))
        .order_by(JobRow.run_id, JobRow.id)
        .limit(_SWEEP_BATCH)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()
    _lock_subjects(s, rows)
    nudges, lost = list[Nudge](), list[Lost | None]()
    for row in rows:
        ended = row.run_id is not None and RunStatus(lock_run(s, row.run_id).status).ended
        if ended and row.kind in BROKEN_OFF:
            drop(s, row, "the run ended first")
            continue
        message = lost_words(row)
        lost.append(count_lost(s, row))
        again = row.attempts < ATTEMPTS and not ended
        nudges += retry_job(s, row, message) if again else give_up(s, row, message)
    return nudges, lost


def _lock_subjects(s: Session, rows: Sequence[JobRow]) -> None:
    """Lock the Problems, then the Runs, of locked Jobs: a change of one of them may need both."""
    if not rows:
        return
    runs = {row.run_id for row in rows if row.run_id is not None}
    subjects = [row.subject_id for row in rows if row.run_id is None]
    problems = union(
        select(RunRow.problem_id).where(RunRow.id.in_(runs)),
        select(AdmissionRow.problem_id).where(AdmissionRow.id.in_(subjects)),
        select(BaselineRow.problem_id).where(BaselineRow.id.in_(subjects)),
    )
    lock_problems(s, s.scalars(problems).all())
    lock_runs(s, RunRow.id.in_(runs))


def _hand_over(s: Session) -> None:
    """Give an Admission or Baselines of a closed project, or one over a quota, to a project whose Run waits for them.

    A Run joins what another project ordered. Jobs are locked here before any Run, and skipped where a worker has them.
    """
    shared = ALIVE, JobRow.state == "ready", JobRow.kind.in_((JobKind.ADMIT, JobKind.BASELINE))
    stuck = select(JobRow).where(*shared, JobRow.project_id.in_(spent(s)))
    for row in s.scalars(stuck.with_for_update(skip_locked=True)).all():
        joined = or_(RunRow.admission_id == row.subject_id, RunRow.baseline_id == row.subject_id)
        waiting = select(RunRow.project_id).where(joined, RunRow.status.in_(_GOING), RunRow.project_id.not_in(spent(s)))
        row.project_id = s.scalars(waiting.order_by(RunRow.id).limit(1)).one_or_none() or row.project_id
    s.flush()


def _hold_spent(s: Session) -> None:
    """Pause the Runs of projects over a quota: their Jobs are held, and the Run's message says why."""
    query = select(RunRow.id).where(RunRow.status.in_(_GOING), RunRow.project_id.in_(spent(s)))
    why = "Paused: the project was closed, or its quota of this month is used up. Resume the run afterwards."
    for run_id in s.scalars(query.order_by(RunRow.id)).all():
        if not RunStatus(lock_run(s, run_id).status).ended:  # it may have been cancelled meanwhile
            pause_run(s, run_id, why=why)


def _wake(s: Session) -> list[Nudge]:
    busy = select(JobRow.id).where(JobRow.run_id == RunRow.id, JobRow.state.in_(("ready", "claimed"))).exists()
    ids = s.scalars(
        select(RunRow.id)
        .where(RunRow.status == RunStatus.RUNNING, (RunRow.deadline_at < now(s)) | ~busy)
        .order_by(RunRow.id)
    ).all()
    nudges: list[Nudge] = []
    for run_id in ids:
        nudges += enqueue_advance(s, lock_run(s, run_id))
    return nudges
