"""Tables behind pages, updated by the transitions, so that no page counts or scans the Candidates of a Run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Double, ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Id, Word


class MilestoneRow(Base):
    """A moment at which a Run's best changed, with the use so far. `confirmed`: a Champion was promoted."""

    __tablename__ = "milestones"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    candidate_id: Mapped[Id]
    number: Mapped[int]
    speedup: Mapped[float] = mapped_column(Double)
    speedup_low: Mapped[float] = mapped_column(Double)
    speedup_high: Mapped[float] = mapped_column(Double)
    confirmed: Mapped[bool]
    evaluations: Mapped[int]
    device_s: Mapped[float] = mapped_column(Double)
    wall_s: Mapped[float] = mapped_column(Double)
    usd: Mapped[float] = mapped_column(Double)
    at: Mapped[datetime]


class TallyRow(Base):
    """The number of a Run's Evaluations by stage and verdict. `kind` is judge or confirm."""

    __tablename__ = "tallies"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    kind: Mapped[Word] = mapped_column(primary_key=True)
    stage: Mapped[Word] = mapped_column(primary_key=True)
    verdict: Mapped[Word] = mapped_column(primary_key=True)
    number: Mapped[int]
    device_s: Mapped[float] = mapped_column(Double, default=0.0)


class DeviceHourRow(Base):
    """The work of a device within one hour of UTC. `observed` is its last reading of clocks and temperature."""

    __tablename__ = "device_hours"

    uuid: Mapped[str] = mapped_column(Text, primary_key=True)
    hour: Mapped[datetime] = mapped_column(primary_key=True)
    busy_s: Mapped[float] = mapped_column(Double)
    evaluations: Mapped[int]
    observed: Mapped[dict[str, Any] | None]
