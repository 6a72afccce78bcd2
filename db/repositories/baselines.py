"""Reads of Baseline reports."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.packing import load_baseline
from db.tables.core import BaselineRow
from evaluator.types import BaselineReport, DeviceKind


def newest(s: Session, problem_id: str, device_kind: DeviceKind) -> BaselineReport | None:
    """Return the newest Baseline report of a Problem on a device kind, without samples, or None."""
    body = s.scalars(
        select(BaselineRow.body)
        .where(
            BaselineRow.problem_id == problem_id,
            BaselineRow.device_kind == device_kind,
            BaselineRow.state == "timed",
        )
        .order_by(BaselineRow.id.desc())
        .limit(1)
    ).one_or_none()
    return None if body is None else load_baseline(body)
