"""The next decisions for a Run, made by the search inside the settling transaction."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.advance import advance
from db.views.rows import Job
from workers.context import Context
from workers.handlers.base import Settle


def handle(_context: Context, job: Job, _work: None) -> Settle:
    """Return a function that lets the search decide and writes its decisions."""

    def settle(s: Session) -> list[Nudge]:
        return advance(s, job)

    return settle
