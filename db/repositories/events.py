"""Reads of events."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables import EventRow, RunRow
from db.views import EventView


def after(s: Session, run_id: str, seq: int, limit: int = 100) -> list[EventView]:
    """Events of a Run with a greater seq, in order."""
    rows = s.scalars(
        select(EventRow).where(EventRow.run_id == run_id, EventRow.seq > seq).order_by(EventRow.seq).limit(limit)
    )
    return [
        EventView(run_id=row.run_id, seq=row.seq, kind=row.kind, created_at=iso(row.created_at) or "", data=row.data)
        for row in rows
    ]


def last_seqs(s: Session, run_ids: list[str]) -> Mapping[str, int]:
    """The newest seq of each of these Runs, for a tailer that follows many with one query."""
    return dict(s.execute(select(RunRow.id, RunRow.last_seq).where(RunRow.id.in_(run_ids))).all())
