"""The queue as pages show it."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.tables.queue import ALIVE, JobRow
from db.views.rows import JobView, QueueView


def of_run(s: Session, run_id: str, *, limit: int = 100) -> tuple[JobView, ...]:
    """List Jobs that are claimed, ready, or held while the Run is paused: oldest first."""
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


def depths(s: Session) -> tuple[QueueView, ...]:
    """Count the ready and claimed Jobs of each queue, over all projects."""
    moment = now(s)
    rows = s.execute(
        select(JobRow.queue, JobRow.state, func.count(), func.min(JobRow.created_at))
        .where(ALIVE)
        .group_by(JobRow.queue, JobRow.state)
    ).all()
    counts = {(queue, state): (count, oldest) for queue, state, count, oldest in rows}
    found = []
    for queue in sorted({queue for queue, _ in counts}):
        ready, oldest = counts.get((queue, "ready"), (0, None))
        found.append(
            QueueView(
                queue=queue,
                ready=ready,
                held=counts.get((queue, "held"), (0, None))[0],
                claimed=counts.get((queue, "claimed"), (0, None))[0],
                oldest_ready_s=None if oldest is None else max(0.0, (moment - oldest).total_seconds()),
            )
        )
    return tuple(found)
