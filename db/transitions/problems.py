"""Writes of Problems."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import Conflict, NotFound
from db.ids import new_id
from db.repositories import problems
from db.tables.core import ProblemRow, Project, RunRow
from db.transitions.work.locks import lock_problem
from db.views.rows import ProblemView
from evaluator.schema import to_json
from evaluator.screening.family import family_of
from evaluator.types import SCHEMA_VERSION, Problem


def create_problem(s: Session, project_id: str, problem: Problem, *, description: str = "") -> ProblemView:
    """Store a Problem, or find the stored one with its hash in this project. Raise NotFound for the project."""
    # The project's row is the lock that makes "look, then store" one step.
    if (
        s.scalars(select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)).one_or_none()
        is None
    ):
        raise NotFound("project", project_id)
    stored = s.scalars(
        select(ProblemRow).where(ProblemRow.project_id == project_id, ProblemRow.hash == problem.hash)
    ).one_or_none()
    if stored is None:
        stored = ProblemRow(
            id=new_id("prob"),
            project_id=project_id,
            hash=problem.hash,
            name=problem.name,
            description=description,
            body=to_json(problem),
            schema_version=SCHEMA_VERSION,
            family=family_of(problem.source),
            created_at=now(s),
        )
        s.add(stored)
        s.flush()
    return problems.view(stored)


def publish_problem(s: Session, problem_id: str, project_id: str, *, public: bool) -> ProblemView:
    """Make a Problem and its Champions visible to every project, or to its own alone again.

    Raise NotFound (also for another project's public Problem), Conflict where others have Runs of it.
    """
    row = lock_problem(s, problem_id, project_id)
    if row.project_id != project_id:
        raise NotFound("problem", problem_id)
    if row.public and not public:
        others = select(RunRow.id).where(RunRow.problem_id == problem_id, RunRow.project_id != project_id).limit(1)
        if s.scalars(others).one_or_none() is not None:
            raise Conflict("other projects have Runs of this Problem: it stays public")
    row.public = public
    s.flush()
    return problems.view(row)
