"""From a new Run to a running one: admission and Baselines, each done once and found again."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.queues import JobKind, Nudge
from db.repositories import champions
from db.tables import AdmissionRow, BaselineRow, DeviceRow, RunRow
from db.transitions.events import emit
from db.transitions.orders import order_advance, order_job
from evaluator.schema import from_json
from evaluator.types import SCHEMA_VERSION, DeviceKind
from evolution.types import Budget, RunStatus


def progress(s: Session, run: RunRow, status: RunStatus) -> None:
    """Move a locked Run on. A paused Run stays paused and will come back to the new status."""
    if run.status == RunStatus.PAUSED:
        run.paused_from = status
        return
    run.status = status
    emit(s, run.id, "run.status", status=status.value)


def seek_admission(s: Session, run: RunRow) -> list[Nudge]:
    """Find an Admission that still holds, join one under way, or order one."""
    rows = s.scalars(
        select(AdmissionRow)
        .where(
            AdmissionRow.problem_id == run.problem_id,
            AdmissionRow.device_kind == run.device_kind,
            AdmissionRow.state.in_(("accepted", "open")),
        )
        .order_by(AdmissionRow.id.desc())
    ).all()
    keys = _environments(s, run.device_kind)
    accepted = next(
        (row for row in rows if row.state == "accepted" and (not keys or row.environment_key in keys)), None
    )
    if accepted is not None:
        run.admission_id = accepted.id
        emit(s, run.id, "problem.admitted", problem_id=run.problem_id, admission_id=accepted.id, cached=True)
        return seek_baseline(s, run)
    under_way = next((row for row in rows if row.state == "open"), None)
    if under_way is not None:
        run.admission_id = under_way.id
        return []
    row = AdmissionRow(
        id=new_id("adm"),
        problem_id=run.problem_id,
        device_kind=run.device_kind,
        state="open",
        schema_version=SCHEMA_VERSION,
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    run.admission_id = row.id
    return order_job(s, JobKind.ADMIT, row.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind))


def seek_baseline(s: Session, run: RunRow) -> list[Nudge]:
    """Find Baselines timed on a present device and environment, join a timing under way, or order one."""
    rows = s.scalars(
        select(BaselineRow)
        .where(
            BaselineRow.problem_id == run.problem_id,
            BaselineRow.device_kind == run.device_kind,
            BaselineRow.state.in_(("timed", "open")),
        )
        .order_by(BaselineRow.id.desc())
    ).all()
    keys = _environments(s, run.device_kind)
    timed = next((row for row in rows if row.state == "timed" and (not keys or row.environment_key in keys)), None)
    if timed is not None:
        run.baseline_id = timed.id
        return start(s, run)
    under_way = next((row for row in rows if row.state == "open"), None)
    if under_way is not None:
        run.baseline_id = under_way.id
        return []
    row = BaselineRow(
        id=new_id("base"),
        problem_id=run.problem_id,
        device_kind=run.device_kind,
        state="open",
        schema_version=SCHEMA_VERSION,
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    run.baseline_id = row.id
    return order_job(s, JobKind.BASELINE, row.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind))


def _environments(s: Session, device_kind: str) -> set[str]:
    """Environment keys of the devices of a kind; empty where none has registered (then any cached result will do)."""
    return set(s.scalars(select(DeviceRow.environment_key).where(DeviceRow.kind == device_kind)))


def start(s: Session, run: RunRow) -> list[Nudge]:
    """The search begins: the wall clock starts here, so waiting for a device is not charged."""
    moment = now(s)
    run.started_at = moment
    if run.paused_at is not None:
        run.paused_at = moment
    wall_s = from_json(Budget, run.budget).wall_s
    run.deadline_at = None if wall_s is None else moment + timedelta(seconds=wall_s)
    standing = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    run.champion_id = run.warm_id = standing.candidate_id if standing is not None else None
    progress(s, run, RunStatus.RUNNING)
    return order_advance(s, run)
