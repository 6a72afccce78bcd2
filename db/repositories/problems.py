"""Reads of Problems."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.errors import NotFound
from db.tables.core import AdmissionRow, ProblemRow
from db.views.rows import ProblemView
from evaluator.schema import from_json
from evaluator.screening.family import Family
from evaluator.types import Admission, DeviceKind, Problem, WorkloadFacts


def view(row: ProblemRow) -> ProblemView:
    return ProblemView(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        description=row.description,
        hash=row.hash,
        problem=from_json(Problem, row.body),
        created_at=iso(row.created_at) or "",
        public=row.public,
        family=Family(row.family),
    )


def get(s: Session, problem_id: str, *, project_id: str | None = None) -> ProblemView:
    """Return an own or a public Problem. Raise NotFound."""
    row = s.get(ProblemRow, problem_id)
    if row is None or (project_id is not None and row.project_id != project_id and not row.public):
        raise NotFound("problem", problem_id)
    return view(row)


def names(s: Session, ids: Collection[str]) -> dict[str, str]:
    rows = s.execute(select(ProblemRow.id, ProblemRow.name).where(ProblemRow.id.in_(ids)))
    return {row.id: row.name for row in rows}


def facts(s: Session, problem_id: str, device_kind: DeviceKind) -> tuple[WorkloadFacts, ...]:
    """Return the newest accepted Admission's facts about every Workload; empty where there is no such Admission."""
    row = s.scalars(
        select(AdmissionRow)
        .where(
            AdmissionRow.problem_id == problem_id,
            AdmissionRow.device_kind == device_kind,
            AdmissionRow.state == "accepted",
        )
        .order_by(AdmissionRow.id.desc())
        .limit(1)
    ).one_or_none()
    return () if row is None or row.body is None else from_json(Admission, row.body).facts


def list(
    s: Session,
    project_id: str,
    *,
    limit: int = 50,
    after: str | None = None,
    text: str | None = None,
    hash: str | None = None,
    family: str | None = None,
    public: bool = False,
) -> tuple[ProblemView, ...]:
    """List newest first, the project's own or all public ones; `after` is the last id of the previous page.

    Every word of `text` must be in the name.
    """
    query = select(ProblemRow).where(ProblemRow.public if public else ProblemRow.project_id == project_id)
    for word in (text or "").split()[:8]:
        query = query.where(ProblemRow.name.icontains(word, autoescape=True))
    if hash is not None:
        query = query.where(ProblemRow.hash == hash)
    if family is not None:
        query = query.where(ProblemRow.family == family)
    if after is not None:
        query = query.where(ProblemRow.id < after)
    return tuple(view(row) for row in s.scalars(query.order_by(ProblemRow.id.desc()).limit(limit)))
