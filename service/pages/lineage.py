"""Lineage as a tree: every Candidate under its first parent; further parents are named next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from db.repositories import archive, candidates, lineage
from db.views.rows import CandidateView
from evolution.types import Run

ROOTS_OF = 40
SHOWN = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Candidate, its children in this tree, and the parents that it is not drawn under."""

    candidate: CandidateView
    children: tuple[Node, ...]
    others: tuple[str, ...]


def of_run(session: Session, run: Run) -> tuple[Node, ...]:
    """Return the Champion, the fastest elites and the newest Candidates with their ancestors."""
    fastest = sorted(archive.elites(session, run.id), key=lambda one: -(one.speedup.value if one.speedup else 0.0))
    ids = [id for id in (run.champion_id, run.best_id) if id is not None]
    ids += [one.id for one in fastest[:ROOTS_OF]]
    ids += [one.id for one in candidates.list(session, run.id, limit=ROOTS_OF)]
    return forest(lineage.ancestry(session, ids, project_id=run.project_id, most=SHOWN), run.id)


def forest(found: Sequence[CandidateView], run_id: str) -> tuple[Node, ...]:
    """Build trees of these Candidates. They come oldest first, so parents stand before their children.

    Parents that are not among them are named for Candidates of this Run: those of others may be private.
    """
    known = {one.id for one in found}
    under: dict[str | None, list[CandidateView]] = {}
    for one in found:
        first = next((parent for parent in one.parents if parent in known and parent < one.id), None)
        under.setdefault(first, []).append(one)

    def grow(parent: str | None, depth: int) -> tuple[Node, ...]:
        return tuple(
            Node(
                candidate=one,
                children=grow(one.id, depth + 1) if depth < lineage.MOST_GENERATIONS else (),
                others=tuple(id for id in one.parents if id != parent and (id in known or one.run_id == run_id)),
            )
            for one in under.get(parent, ())
        )

    return grow(None, 0)
