"""Lessons of Runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Id, Word


class LessonRow(Base):
    """One lesson of an ended Run. `body` is an `evolution.lessons.TunableLesson`, `sizes` those of its Workload."""

    __tablename__ = "lessons"
    __table_args__ = (Index(None, "device_kind", "device_name", "id"), Index(None, "run_id"))

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"))
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    device_kind: Mapped[Word]
    device_name: Mapped[str] = mapped_column(Text)
    body: Mapped[dict[str, Any]]
    sizes: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
