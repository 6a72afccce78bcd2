"""Put Jobs on the queue, and take them off it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db import origin
from db.clock import now
from db.ids import new_id
from db.queues import CONTROL, PROPOSE, JobKind, Nudge, build_queue, device_queue
from db.tables.core import EvaluationRow, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.tables.webhooks import WebhookRow
from db.transitions.events import emit
from db.transitions.records.lessons import store_lessons
from db.transitions.work.locks import lock_run
from evaluator.types import DeviceKind
from evolution.lessons import describe
from evolution.types import EndReason, ProposalOutcome, RunStatus

_DEVICE_WORK = (JobKind.ADMIT, JobKind.BASELINE, JobKind.JUDGE, JobKind.CONFIRM)


def enqueue_job(
    s: Session,
    kind: JobKind,
    subject_id: str,
    *,
    project_id: str,
    device_kind: DeviceKind,
    run: RunRow | None = None,
    urgent: bool = False,
) -> list[Nudge]:
    """Put a Job on its queue: held while its Run is paused; not once the Run has ended.

    An `urgent` Job is claimed before the others of its project, and so is every confirmation.
    """
    if run is not None and RunStatus(run.status).ended:
        return []
    queue = _queue_of(kind, device_kind)
    held = run is not None and run.status == RunStatus.PAUSED
    _add(s, kind, queue, subject_id, 1, project_id, run, held=held, urgent=urgent or kind is JobKind.CONFIRM)
    return [] if held else [queue]


def _queue_of(kind: JobKind, device_kind: DeviceKind) -> str:
    if kind is JobKind.BUILD:
        return build_queue(device_kind)
    return device_queue(device_kind) if kind in _DEVICE_WORK else PROPOSE


def enqueue_advance(s: Session, run: RunRow) -> list[Nudge]:
    """Ask for a decision of the Run: at most one advance Job waits per Run. The Run's row must be locked."""
    if run.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        return []
    waiting = s.scalars(
        select(JobRow.id).where(
            JobRow.run_id == run.id, JobRow.state.in_(("ready", "held")), JobRow.kind == JobKind.ADVANCE
        )
    ).first()
    if waiting is not None:
        return []
    run.advances += 1
    held = run.status == RunStatus.PAUSED
    _add(s, JobKind.ADVANCE, CONTROL, run.id, run.advances, run.project_id, run, held=held)
    return [] if held else [CONTROL]


def _add(
    s: Session,
    kind: JobKind,
    queue: str,
    subject: str,
    ordinal: int,
    project: str,
    run: RunRow | None,
    *,
    held: bool,
    urgent: bool = False,
) -> None:
    moment = now(s)
    s.add(
        JobRow(
            id=new_id("job"),
            kind=kind,
            queue=queue,
            run_id=run.id if run is not None else None,
            subject_id=subject,
            ordinal=ordinal,
            project_id=project,
            state="held" if held else "ready",
            urgent=urgent,
            request_id=origin.of(s),
            nudged_at=moment,
            created_at=moment,
        )
    )
    s.flush()


def enqueue_webhook(s: Session, run: RunRow) -> None:
    """Send the Run's webhook, if it has one. The Job belongs to no Run, since it outlives the Run's end."""
    hook = s.get(WebhookRow, run.id)
    if hook is None:
        return
    hook.state, hook.deliveries, hook.settled_at = "ready", hook.deliveries + 1, None
    _add(s, JobKind.WEBHOOK, PROPOSE, run.id, hook.deliveries, run.project_id, None, held=False)


def finish_job(s: Session, row: JobRow) -> None:
    row.state, row.done_at, row.lease, row.lease_until = "done", now(s), None, None


def look_again(s: Session, row: JobRow) -> list[Nudge]:
    """Put the rest of a finished Job without a Run behind the Jobs that are ready now."""
    _add(s, JobKind(row.kind), row.queue, row.subject_id, row.ordinal + 1, row.project_id, None, held=False)
    return [row.queue]


def held_s(row: JobRow) -> float:
    """Return the seconds from the present claim of a finished Job to its end, without waiting."""
    if row.claimed_at is None or row.done_at is None:
        return 0.0
    return max(0.0, (row.done_at - row.claimed_at).total_seconds())


def retry_job(s: Session, row: JobRow, message: str) -> list[Nudge]:
    """Put a claimed Job back: ready, or held while its Run is paused, or dead once its Run has ended."""
    row.lease = row.lease_until = row.worker = None
    row.error = message
    run = lock_run(s, row.run_id) if row.run_id is not None else None  # a pause that commits now has seen it claimed
    if run is not None and run.status == RunStatus.PAUSED:
        row.state = "held"
        return []
    if run is not None and RunStatus(run.status).ended:
        row.state, row.done_at = "dead", now(s)
        s.flush()
        _drop_waiting(s, run, now(s))
        return []
    row.state, row.nudged_at = "ready", now(s)
    return [row.queue]


def end_run(s: Session, run: RunRow, status: RunStatus, reason: EndReason, message: str) -> None:
    """End a locked Run: waiting Jobs and their subjects are closed, results of claimed Jobs stored when they come."""
    moment = now(s)
    run.status, run.end_reason, run.message, run.ended_at = status, reason, message, moment
    s.execute(
        update(JobRow)
        .where(JobRow.run_id == run.id, JobRow.state.in_(("ready", "held")))
        .values(state="dead", done_at=moment, error=f"the run ended: {reason.value}")
        .execution_options(synchronize_session="fetch")
    )
    _drop_waiting(s, run, moment)
    learned = store_lessons(s, run)
    if learned:
        emit(s, run.id, "run.learned", lessons=[describe(one) for one in learned])
    emit(s, run.id, "run.ended", status=status.value, reason=reason.value, message=message, champion_id=run.champion_id)
    enqueue_webhook(s, run)


def _drop_waiting(s: Session, run: RunRow, moment: datetime) -> None:
    """Close the Proposals and Evaluations of an ended Run that no worker holds."""
    working = select(JobRow.subject_id).where(JobRow.run_id == run.id, JobRow.state == "claimed")
    dropped = s.scalars(
        update(ProposalRow)
        .where(ProposalRow.run_id == run.id, ProposalRow.outcome.is_(None), ProposalRow.id.not_in(working))
        .values(outcome=ProposalOutcome.CANCELLED, settled_at=moment, detail="the run ended before it was begun")
        .returning(ProposalRow.id)
        .execution_options(synchronize_session="fetch")
    ).all()
    run.spent_candidates -= len(dropped)
    s.execute(
        update(EvaluationRow)
        .where(
            EvaluationRow.run_id == run.id,
            EvaluationRow.state.in_(("building", "judging")),
            EvaluationRow.id.not_in(working),
        )
        .values(state="cancelled", settled_at=moment)
        .execution_options(synchronize_session="fetch")
    )
