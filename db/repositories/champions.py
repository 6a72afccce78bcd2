"""Reads of Champions."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.tables.core import ChampionRow
from evaluator.types import DeviceKind


def standing(s: Session, problem_id: str, device_kind: DeviceKind) -> ChampionRow | None:
    """Return the newest standing Champion of a Problem on a device kind, or None."""
    return s.scalars(
        select(ChampionRow)
        .where(ChampionRow.problem_id == problem_id, ChampionRow.device_kind == device_kind, ChampionRow.standing)
        .order_by(ChampionRow.promoted_at.desc())
        .limit(1)
    ).one_or_none()
