"""The data behind the metrics: queue, live Runs, devices, counters. Quick for any amount of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.clock import now
from db.repositories.work import queue
from db.tables import counters
from db.tables.core import RunRow
from db.tables.queue import DeviceRow
from db.views.rows import QueueView
from evolution.types import RunStatus

DEVICE_SEEN_S = 900.0
"""A worker reports every five minutes. After three missed reports its device no longer counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """One snapshot. `devices` is by kind and name, `runs` by status."""

    queues: tuple[QueueView, ...]
    runs: Mapping[str, int]
    devices: Mapping[tuple[str, str], int]
    counters: Mapping[str, Mapping[counters.Labels, float]]


def picture(s: Session) -> Operations:
    """Return a snapshot of the present state."""
    moment = now(s)
    return Operations(
        queues=queue.depths(s),
        runs=_runs(s),
        devices=_devices(s, moment),
        counters=counters.totals(s),
    )


def _runs(s: Session) -> dict[str, int]:
    live = [status for status in RunStatus if not status.ended]
    rows = s.execute(select(RunRow.status, func.count()).where(RunRow.status.in_(live)).group_by(RunRow.status))
    return {status.value: 0 for status in live} | dict(rows.all())


def _devices(s: Session, moment: datetime) -> dict[tuple[str, str], int]:
    rows = s.execute(
        select(DeviceRow.kind, DeviceRow.name, func.count())
        .where(DeviceRow.seen_at > moment - timedelta(seconds=DEVICE_SEEN_S))
        .group_by(DeviceRow.kind, DeviceRow.name)
    )
    return {(kind, name): number for kind, name, number in rows}
