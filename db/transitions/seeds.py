"""Seeds of a Run: stored Candidates, chosen by hand or copied from another Run."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import Conflict, NotFound
from db.tables.core import CandidateRow, RunRow
from evaluator.types import Verdict

MOST_INHERITED = 16
"""Each seed is judged again before any proposer is asked."""


class Heritage(StrEnum):
    """The seeds of a fork: every elite of the archive, or only confirmed Candidates."""

    POPULATION = "population"
    CHAMPIONS = "champions"


def check_seeds(s: Session, project_id: str, problem_id: str, ids: tuple[str, ...]) -> None:
    """Raise NotFound or Conflict unless these Candidates may seed a Run of this Problem."""
    if not ids:
        return
    rows = s.execute(
        select(CandidateRow.id, CandidateRow.problem_id, RunRow.project_id)
        .join(RunRow, RunRow.id == CandidateRow.run_id)
        .where(CandidateRow.id.in_(ids))
    )
    found = {row.id: row for row in rows if row.project_id == project_id}
    for id in ids:
        if id not in found:
            raise NotFound("candidate", id)
        if found[id].problem_id != problem_id:
            raise Conflict(f"candidate {id} was written for another Problem: give its source as a seed instead")


def inherited(s: Session, run_id: str, heritage: Heritage, *, most: int) -> tuple[str, ...]:
    """Return the seeds of a fork, fastest first, each source once: at most `most`."""
    kept = CandidateRow.confirmed if heritage is Heritage.CHAMPIONS else CandidateRow.elite
    rows = s.execute(
        select(CandidateRow.id, CandidateRow.hash)
        .where(CandidateRow.run_id == run_id, CandidateRow.verdict == Verdict.PASSED, kept)
        .order_by(CandidateRow.speedup.desc(), CandidateRow.number)
    )
    first: dict[str, str] = {}
    for row in rows:
        first.setdefault(row.hash, row.id)
    return tuple(first.values())[: min(most, MOST_INHERITED)]
