"""Ancestors and descendants of Candidates, one generation a query, within bounds.

A project sees its own and past Champions of public Problems (`db.visible`). A lineage ends at all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from db.repositories.candidates import LISTED, get_many, view
from db.tables.core import CandidateRow
from db.views.rows import CandidateView

MOST_GENERATIONS = 60
MOST_NODES = 400
MOST_LATER = 5000
PIECE = 500
NEAR = 200


def ancestry(s: Session, ids: Sequence[str], *, project_id: str, most: int = MOST_NODES) -> tuple[CandidateView, ...]:
    """Return these Candidates and their ancestors, oldest first: at most `most`, the nearest ones."""
    found: dict[str, CandidateView] = {}
    wanted = list(dict.fromkeys(ids))
    for _ in range(MOST_GENERATIONS):
        wanted = [id for id in wanted if id not in found][: most - len(found)]
        if not wanted:
            break
        views = get_many(s, wanted, project_id=project_id)
        found.update((one.id, one) for one in views)
        wanted = list(dict.fromkeys(parent for one in views for parent in one.parents))
    return tuple(sorted(found.values(), key=lambda one: one.id))


def children(
    s: Session, run_id: str, candidate_id: str, *, after_number: int, limit: int = 20
) -> tuple[CandidateView, ...]:
    """Return the Candidates made from this one, among the next NEAR of its Run."""
    rows = s.execute(
        select(*LISTED)
        .where(
            CandidateRow.run_id == run_id,
            CandidateRow.number > after_number,
            CandidateRow.number <= after_number + NEAR,
        )
        .order_by(CandidateRow.number)
    )
    return tuple(view(row) for row in rows if candidate_id in row.parents)[:limit]


def descendants(
    s: Session, candidate: CandidateView, *, project_id: str, most: int = MOST_NODES
) -> tuple[CandidateView, ...]:
    """Return the descendants of a Candidate by number: at most `most`, among the next MOST_LATER.

    A child is younger than its parents, so one pass over later Candidates finds every generation.
    """
    family = {candidate.id}
    for row in _later(s, candidate):
        if len(family) > most:
            break
        if not family.isdisjoint(row.parents):
            family.add(row.id)
    found = get_many(s, list(family - {candidate.id}), project_id=project_id)
    return tuple(sorted(found, key=lambda one: one.number))


def _later(s: Session, candidate: CandidateView) -> Iterator[Row[str, list[str]]]:
    """Yield the next Candidates of the Run with their parents, in pieces: the first few hold most families."""
    number = candidate.number
    for _ in range(MOST_LATER // PIECE):
        rows = s.execute(
            select(CandidateRow.id, CandidateRow.parents)
            .where(
                CandidateRow.run_id == candidate.run_id,
                CandidateRow.number > number,
                CandidateRow.number <= number + PIECE,
            )
            .order_by(CandidateRow.number)
        ).all()
        yield from rows
        if not rows:
            return
        number += PIECE
