"""The speed of each Candidate on each Workload."""

from __future__ import annotations

from sqlalchemy import Double, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Id, Word


class WorkloadRatioRow(Base):
    """The speedup of a passed Candidate over the fastest Baseline on one Workload, of its newest judging."""

    __tablename__ = "workload_ratios"
    __table_args__ = (Index("ix_workload_ratios_fastest", "run_id", "workload", "combined", "speedup"),)

    candidate_id: Mapped[Id] = mapped_column(ForeignKey("candidates.id"), primary_key=True)
    workload: Mapped[Word] = mapped_column(primary_key=True)
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    combined: Mapped[bool]
    speedup: Mapped[float] = mapped_column(Double)
    low: Mapped[float] = mapped_column(Double)
    high: Mapped[float] = mapped_column(Double)
