"""The Archive of a Run: the elites, one of each design."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.repositories.candidates import LISTED, view
from db.tables.core import CandidateRow
from db.views.rows import CandidateView

MOST_ELITES = 200


def elites(s: Session, run_id: str) -> tuple[CandidateView, ...]:
    """Return the fastest passed Candidate of each of the fastest designs, fastest first."""
    rows = s.execute(
        select(*LISTED)
        .where(CandidateRow.run_id == run_id, CandidateRow.elite)
        .order_by(CandidateRow.speedup.desc(), CandidateRow.number)
        .limit(MOST_ELITES)
    )
    return tuple(map(view, rows))
