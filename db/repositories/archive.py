"""The Archive of a Run: the elite of every cell, island by Niche. Bounded by the number of cells."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.repositories.candidates import LISTED, view
from db.tables import CandidateRow
from db.views import CandidateView

MOST_CELLS = 2000


def elites(s: Session, run_id: str) -> tuple[CandidateView, ...]:
    """The fastest passed Candidate of every cell, by island and Niche."""
    rows = s.execute(select(*LISTED).where(CandidateRow.run_id == run_id, CandidateRow.elite).limit(MOST_CELLS))
    return tuple(view(row) for row in sorted(rows, key=lambda row: (row.island, row.niche)))
