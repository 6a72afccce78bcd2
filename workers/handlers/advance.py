"""What next for a Run: the search decides inside the settling transaction, and nothing is executed."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.advance import advance
from db.views.rows import Job
from workers.context import Context
from workers.handlers.base import Settle


def handle(_context: Context, job: Job, _work: None) -> Settle:
    """Let the search decide and write its decisions."""

    def settle(s: Session) -> list[Nudge]:
        return advance(s, job)

    return settle
