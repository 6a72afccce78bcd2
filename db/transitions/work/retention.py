"""Housekeeping: drop old raw samples. Medians and intervals stay, and Champions keep all samples."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from db.ids import first_id
from db.tables.core import ChampionRow, EvaluationRow, RunRow, SampleRow

BATCH = 500


def drop_samples(s: Session, before: datetime, *, after: str = "") -> str | None:
    """Drop the raw samples of one batch of Evaluations and Baseline reports created before a moment.

    Samples of every past or present Champion, and of its Baselines, are kept. Return the position for the next
    transaction, or None at the end, so each transaction is short for any backlog. Ids sort by time, so age needs no
    column.
    """
    for prefix in ("base", "eval"):
        low, high = max(after, f"{prefix}_"), first_id(prefix, before)
        if low >= high:
            continue
        owners = s.scalars(
            select(SampleRow.owner_id)
            .where(SampleRow.owner_id > low, SampleRow.owner_id < high)
            .distinct()
            .order_by(SampleRow.owner_id)
            .limit(BATCH)
        ).all()
        if not owners:
            continue
        gone = set(owners) - _kept(s, owners)
        s.execute(delete(SampleRow).where(SampleRow.owner_id.in_(gone)).execution_options(synchronize_session=False))
        return owners[-1]
    return None


def gather_statistics(s: Session) -> None:
    """Sample SQLite's tables, so that its planner picks the right index; PostgreSQL does so by itself."""
    if s.get_bind().dialect.name == "sqlite":
        s.execute(text("PRAGMA analysis_limit=1000"))
        s.execute(text("ANALYZE"))


def _kept(s: Session, owners: Sequence[str]) -> set[str]:
    evaluations = (
        select(EvaluationRow.id)
        .join(ChampionRow, ChampionRow.candidate_id == EvaluationRow.candidate_id)
        .where(EvaluationRow.id.in_(owners))
    )
    baselines = (
        select(RunRow.baseline_id)
        .join(ChampionRow, ChampionRow.run_id == RunRow.id)
        .where(RunRow.baseline_id.in_(owners))
    )
    return {id for id in (*s.scalars(evaluations), *s.scalars(baselines)) if id is not None}
