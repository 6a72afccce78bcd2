"""How busy the devices are."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.history import DeviceHourRow
from db.views import DeviceHour

HOURS = 24


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
