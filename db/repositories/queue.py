"""The queue as people see it: what a Run has in the works."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables import JobRow
from db.views import JobView


def of_run(s: Session, run_id: str, *, limit: int = 100) -> tuple[JobView, ...]:
    """Jobs that are worked on, ready, or held while the Run is paused: the oldest first."""
    rows = s.scalars(
        select(JobRow)
        .where(JobRow.run_id == run_id, JobRow.state.in_(("claimed", "ready", "held")))
        .order_by(JobRow.id)
        .limit(limit)
    )
    return tuple(
        JobView(
            id=row.id,
            kind=row.kind,
            queue=row.queue,
            state=row.state,
            attempts=row.attempts,
            worker=row.worker,
            error=row.error,
            created_at=iso(row.created_at) or "",
            claimed_at=iso(row.claimed_at),
        )
        for row in rows
    )
