"""Utilisation of devices, and the workers."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.tables.history import DeviceHourRow
from db.tables.queue import ALIVE, JobRow
from db.tables.workers import WorkerRow
from db.views.rows import DeviceHour, WorkerView

HOURS = 24
PRESENT = timedelta(seconds=90)
"""A worker that was silent for this long counts as gone, unless it holds a Job."""


def hours(s: Session) -> dict[str, tuple[DeviceHour, ...]]:
    """Return the last HOURS hours of every device by its uuid, oldest first, without idle hours."""
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


def workers(s: Session, *, limit: int = 500) -> tuple[WorkerView, ...]:
    """List the workers that hold a Job, the longest at it first, then those that wait for one.

    The owner of a Job is not shown.
    """
    held = s.execute(
        select(JobRow.worker, JobRow.queue, JobRow.kind, JobRow.claimed_at, JobRow.lease_until)
        .where(ALIVE, JobRow.state == "claimed")
        .order_by(JobRow.claimed_at)
        .limit(limit)
    ).all()
    present = s.scalars(
        select(WorkerRow).where(WorkerRow.seen_at > now(s) - PRESENT).order_by(WorkerRow.queue, WorkerRow.name)
    ).all()
    seen = {row.name: iso(row.seen_at) for row in present}
    busy = [
        WorkerView(
            worker=row.worker or "",
            queue=row.queue,
            kind=row.kind,
            claimed_at=iso(row.claimed_at),
            lease_until=iso(row.lease_until),
            seen_at=seen.get(row.worker or ""),
        )
        for row in held
    ]
    at_work = {one.worker for one in busy}
    idle = [
        WorkerView(
            worker=row.name, queue=row.queue, kind=None, claimed_at=None, lease_until=None, seen_at=iso(row.seen_at)
        )
        for row in present
        if row.name not in at_work
    ]
    return (*busy, *idle)[:limit]
