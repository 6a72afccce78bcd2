"""What earlier Runs found for similar Problems: Champions by what the reference computes, on such a device."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from db.tables import CandidateRow, ChampionRow, ProblemRow, RunRow
from db.work import Remembered
from evaluator.types import Language
from evolution.fingerprint import fingerprint, likeness

LEAST_LIKENESS = 0.5
_NEWEST = 200


def similar_champion(s: Session, run: RunRow, reference: str) -> Remembered | None:
    """The Champion of the most similar other Problem, own or public; the faster of equally similar ones."""
    wanted = fingerprint(reference)
    rows = s.execute(
        select(ChampionRow.candidate_id, ChampionRow.speedup, ProblemRow.name, ProblemRow.body)
        .join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        .where(
            ChampionRow.standing,
            ChampionRow.device_kind == run.device_kind,
            ChampionRow.problem_id != run.problem_id,
            or_(ProblemRow.project_id == run.project_id, ProblemRow.public),
        )
        .order_by(ChampionRow.id.desc())
        .limit(_NEWEST)
    ).all()
    alike = [(likeness(wanted, fingerprint(str(row.body["source"]))), row.speedup, row) for row in rows]
    fit = [item for item in alike if item[0] >= LEAST_LIKENESS]
    if not fit:
        return None
    row = max(fit, key=lambda item: (item[0], item[1]))[2]
    candidate = s.get_one(CandidateRow, row.candidate_id)
    return Remembered(
        problem=row.name, speedup=row.speedup, language=Language(candidate.language), source=candidate.source
    )
