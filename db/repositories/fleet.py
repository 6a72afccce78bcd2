"""The devices, how busy they are, and what waits for them."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.history import DeviceHourRow
from db.tables import JobRow
from db.views import DeviceHour, JobView

HOURS = 24
MOST_JOBS = 100


def hours(s: Session) -> dict[str, tuple[DeviceHour, ...]]:
    """The last HOURS hours of every device by its uuid, oldest first; hours without work are left out."""
    rows = s.scalars(
        select(DeviceHourRow).where(DeviceHourRow.hour > now(s) - timedelta(hours=HOURS)).order_by(DeviceHourRow.hour)
    )
    found: dict[str, list[DeviceHour]] = {}
    for row in rows:
        one = DeviceHour(
            hour=iso(row.hour) or "", busy_s=row.busy_s, evaluations=row.evaluations, observed=row.observed
        )
        found.setdefault(row.uuid, []).append(one)
    return {uuid: tuple(ones) for uuid, ones in found.items()}


def at_work(s: Session, project_id: str) -> tuple[JobView, ...]:
    """The Jobs of a project that workers hold at the moment, the oldest claims first."""
    rows = s.scalars(
        select(JobRow)
        .where(JobRow.state == "claimed", JobRow.project_id == project_id)
        .order_by(JobRow.lease_until)
        .limit(MOST_JOBS)
    )
    return tuple(
        JobView(
            id=row.id,
            kind=row.kind,
            queue=row.queue,
            state=row.state,
            attempts=row.attempts,
            worker=row.worker,
            error=row.error,
            created_at=iso(row.created_at) or "",
            claimed_at=iso(row.claimed_at),
            run_id=row.run_id,
        )
        for row in rows
    )
