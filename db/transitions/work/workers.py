"""Presence of workers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from db.clock import now
from db.tables.workers import WorkerRow

FORGOTTEN_AFTER = timedelta(days=1)


def record_heartbeat(
    s: Session, name: str, queue: str, *, device_uuid: str | None = None, observed: Mapping[str, Any] | None = None
) -> None:
    """Record that a worker is alive, with its readings of its device. Workers silent for a day are deleted."""
    moment = now(s)
    s.execute(delete(WorkerRow).where(WorkerRow.seen_at < moment - FORGOTTEN_AFTER))
    row = s.get(WorkerRow, name)
    if row is None:
        row = WorkerRow(name=name, started_at=moment)
        s.add(row)
    row.queue, row.device_uuid, row.seen_at = queue, device_uuid, moment
    row.observed = dict(observed) if observed is not None else None
    s.flush()


def deregister(s: Session, name: str) -> None:
    """Remove a worker that has ended."""
    s.execute(delete(WorkerRow).where(WorkerRow.name == name))
