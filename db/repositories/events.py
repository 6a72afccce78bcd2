"""Reads of events."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables.core import EventRow, RunRow
from db.views.rows import EventView

_AT_ONCE = 300
_LATELY = 30
_DEVICE_WORK = ("run.progress", "problem.admitted", "baseline.timed", "evaluation.settled", "run.status", "run.ended")


def view(row: EventRow) -> EventView:
    return EventView(run_id=row.run_id, seq=row.seq, kind=row.kind, created_at=iso(row.created_at) or "", data=row.data)


def after(s: Session, run_id: str, seq: int, limit: int = 100) -> list[EventView]:
    """Return events of a Run with a greater seq, in order."""
    rows = s.scalars(
        select(EventRow).where(EventRow.run_id == run_id, EventRow.seq > seq).order_by(EventRow.seq).limit(limit)
    )
    return [view(row) for row in rows]


def doing(s: Session, run_id: str) -> str:
    """Return what a Run's judge was last said to be doing, in words; "" if that is over."""
    newest = s.scalars(select(EventRow).where(EventRow.run_id == run_id).order_by(EventRow.seq.desc()).limit(_LATELY))
    last = next((row for row in newest if row.kind in _DEVICE_WORK), None)
    return str(last.data.get("text", "")) if last is not None and last.kind == "run.progress" else ""


def since(s: Session, tails: Mapping[str, int], limit: int) -> list[EventView]:
    """Return the events of each of these Runs after its seq: by Run and in order, at most `limit` for each.

    One statement covers all Runs, so a Run without news costs one row.
    """
    found: list[EventView] = []
    for ids in _chunks(tails):
        newest = dict(s.execute(select(RunRow.id, RunRow.last_seq).where(RunRow.id.in_(ids))).all())
        moved = [
            and_(EventRow.run_id == id, EventRow.seq.between(tails[id] + 1, tails[id] + limit))
            for id in ids
            if newest.get(id, 0) > tails[id]
        ]
        if moved:
            query = select(EventRow).where(or_(*moved)).order_by(EventRow.run_id, EventRow.seq)
            found += [view(row) for row in s.scalars(query)]
    return found


def _chunks(tails: Mapping[str, int]) -> list[list[str]]:
    """Split for SQLite, which refuses expressions that are deeper than a thousand."""
    ids = list(tails)
    return [ids[begin : begin + _AT_ONCE] for begin in range(0, len(ids), _AT_ONCE)]
