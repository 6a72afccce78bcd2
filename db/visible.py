"""The visible rows of a project: its own, and public ones. All others do not exist for it.

Public are a Problem that its owner published, and the Champions of that Problem, past ones too. Runs, Proposals
(prompts and replies) and every other Candidate stay with the project that made them.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import aliased

from db.tables.core import CandidateRow, ChampionRow, ProblemRow, RunRow


def problem_visible(project_id: str) -> ColumnElement[bool]:
    """Match each `ProblemRow` that this project may see."""
    return or_(ProblemRow.project_id == project_id, ProblemRow.public)


def candidate_visible(project_id: str) -> ColumnElement[bool]:
    """Match each `CandidateRow` that this project may see, independent of the query's other joins."""
    run, champion, problem = aliased(RunRow), aliased(ChampionRow), aliased(ProblemRow)
    own = select(run.id).where(run.id == CandidateRow.run_id, run.project_id == project_id).exists()
    crowned = (
        select(champion.id)
        .join(problem, problem.id == champion.problem_id)
        .where(champion.problem_id == CandidateRow.problem_id, champion.candidate_id == CandidateRow.id, problem.public)
        .exists()
    )
    return or_(own, crowned)
