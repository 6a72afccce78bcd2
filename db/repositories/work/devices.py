"""Reads of devices."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables.queue import DeviceRow
from db.tables.workers import WorkerRow
from db.views.rows import DeviceView
from evaluator.schema import from_json
from evaluator.types import Device, DeviceKind, Environment


def list(s: Session) -> tuple[DeviceView, ...]:
    """List every registered device, newest seen first, with a worker's last readings of it."""
    told = s.scalars(select(WorkerRow).where(WorkerRow.observed.is_not(None)).order_by(WorkerRow.seen_at))
    newest = {row.device_uuid: row for row in told}
    return tuple(
        DeviceView(
            device=Device(kind=DeviceKind(row.kind), name=row.name, uuid=row.uuid, facts=row.facts),
            environment=from_json(Environment, row.environment),
            queue=row.queue,
            isolation=tuple(row.isolation),
            seen_at=iso(row.seen_at) or "",
            observed=(newest[row.uuid].observed or {}) if row.uuid in newest else {},
            observed_at=iso(newest[row.uuid].seen_at) if row.uuid in newest else None,
        )
        for row in s.scalars(select(DeviceRow).order_by(DeviceRow.seen_at.desc()))
    )
