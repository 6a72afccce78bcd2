"""The standing Champion of every Problem on every device."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables import CandidateRow, ChampionRow, ProblemRow
from db.views import LeaderboardEntry
from evaluator.schema import from_json
from evaluator.types import DeviceKind, Language, Ratio


def rows(
    s: Session, project_id: str, *, limit: int = 100, problem_id: str | None = None
) -> tuple[LeaderboardEntry, ...]:
    """Greatest confirmed speedup first."""
    query = (
        select(ChampionRow, ProblemRow.name, CandidateRow.language, CandidateRow.proposer, CandidateRow.model)
        .join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        .join(CandidateRow, CandidateRow.id == ChampionRow.candidate_id)
        .where(ChampionRow.project_id == project_id, ChampionRow.standing)
        .order_by(ChampionRow.speedup.desc(), ChampionRow.id)
        .limit(limit)
    )
    if problem_id is not None:
        query = query.where(ChampionRow.problem_id == problem_id)
    return tuple(
        LeaderboardEntry(
            problem_id=champion.problem_id,
            problem_name=name,
            device_kind=DeviceKind(champion.device_kind),
            device_name=champion.device_name,
            run_id=champion.run_id,
            candidate_id=champion.candidate_id,
            language=Language(language),
            proposer=proposer,
            model=model,
            fastest_baseline=champion.fastest_baseline,
            against_fastest=from_json(Ratio, champion.against_fastest),
            against_eager=None if champion.against_eager is None else from_json(Ratio, champion.against_eager),
            confirmed_at=iso(champion.promoted_at) or "",
        )
        for champion, name, language, proposer, model in s.execute(query)
    )
