"""Notes about the work in progress, as events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from db.tables.core import RunRow
from db.transitions.events import emit
from db.views.rows import Job
from evolution.types import RunStatus

_ENDED = [status for status in RunStatus if status.ended]


def note_progress(s: Session, job: Job, note: Mapping[str, Any]) -> None:
    """Tell every live Run that waits for this Job: its own, or those that wait for the Admission or Baselines."""
    if job.run_id is not None:
        waits = RunRow.id == job.run_id
    else:
        waits = or_(RunRow.admission_id == job.subject_id, RunRow.baseline_id == job.subject_id)
    for run_id in s.scalars(select(RunRow.id).where(waits, RunRow.status.not_in(_ENDED)).order_by(RunRow.id)).all():
        emit(s, run_id, "run.progress", **note)
