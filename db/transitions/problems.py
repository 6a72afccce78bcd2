"""Writes of Problems."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import NotFound
from db.ids import new_id
from db.repositories import problems
from db.tables import ProblemRow, Project
from db.views import ProblemView
from evaluator.schema import to_json
from evaluator.types import SCHEMA_VERSION, Problem


def create_problem(s: Session, project_id: str, problem: Problem, *, description: str = "") -> ProblemView:
    """Store a Problem, or find the stored one with its hash in this project. Raises NotFound for the project."""
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
            created_at=now(s),
        )
        s.add(stored)
        s.flush()
    return problems.view(stored)
