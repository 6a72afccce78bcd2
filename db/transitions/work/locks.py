"""Rows locked for writing. The order is always Job, Problem, Run (by id where several), then the rest: no deadlocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db import origin
from db.errors import NotFound
from db.tables.core import ProblemRow, RunRow
from db.tables.queue import JobRow
from db.views.rows import Job


def lock_job(s: Session, job: Job) -> JobRow | None:
    """Lock the row of a Job; None where this claim no longer holds it (settled, swept, claimed by another).

    Jobs enqueued from here on belong to the same HTTP request.
    """
    row = s.scalars(
        select(JobRow)
        .where(JobRow.id == job.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None or row.state != "claimed" or row.lease != job.lease:
        return None
    origin.inherit(s, row.request_id)
    return row


def lock_run(s: Session, run_id: str, project_id: str | None = None) -> RunRow:
    """Lock the row of a Run until the transaction ends. Raise NotFound."""
    row = s.scalars(
        select(RunRow)
        .where(RunRow.id == run_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None or (project_id is not None and row.project_id != project_id):
        raise NotFound("run", run_id)
    return row


def lock_problem(s: Session, problem_id: str, project_id: str | None = None) -> ProblemRow:
    """Lock the row of a Problem, to join or settle its Admission or Baselines.

    With `project_id`: a Problem that this project may see, its own or a public one. Raise NotFound.
    """
    row = s.scalars(select(ProblemRow).where(ProblemRow.id == problem_id).with_for_update(key_share=True)).one_or_none()
    if row is None or (project_id is not None and row.project_id != project_id and not row.public):
        raise NotFound("problem", problem_id)
    return row


def lock_problems(s: Session, ids: Collection[str]) -> None:
    """Lock several Problems, in the order of their ids."""
    query = select(ProblemRow.id).where(ProblemRow.id.in_(ids)).order_by(ProblemRow.id)
    s.execute(query.with_for_update(key_share=True)).all()


def lock_runs(s: Session, *conditions: object) -> Sequence[RunRow]:
    """Lock the rows of the matching Runs, in the order of their ids."""
    return s.scalars(
        select(RunRow)
        .where(*conditions)  # type: ignore[arg-type]
        .order_by(RunRow.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).all()
