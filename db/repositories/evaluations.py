"""Reads of Evaluations."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from db.clock import iso
from db.packing import load_evaluations
from db.tables import EvaluationRow
from db.views import EvaluationView
from evaluator.types import Evaluation


def for_candidate(s: Session, candidate_id: str, *, samples: bool = True) -> tuple[Evaluation, ...]:
    """Settled Evaluations, oldest first; without `samples` each Measurement carries its median alone."""
    rows = s.scalars(_settled(candidate_id)).all()
    return tuple(load_evaluations(s, {row.id: row.body for row in rows if row.body is not None}, samples=samples))


def list(s: Session, candidate_id: str) -> tuple[EvaluationView, ...]:
    """Settled Evaluations, oldest first, with their ids and kinds; samples left out."""
    rows = [row for row in s.scalars(_settled(candidate_id)) if row.body is not None]
    whole = load_evaluations(s, {row.id: row.body for row in rows if row.body is not None}, samples=False)
    return tuple(
        EvaluationView(
            id=row.id,
            candidate_id=row.candidate_id,
            kind=row.kind,
            evaluation=evaluation,
            created_at=iso(row.created_at) or "",
            settled_at=iso(row.settled_at) or "",
        )
        for row, evaluation in zip(rows, whole, strict=True)
    )


def _settled(candidate_id: str) -> Select[EvaluationRow]:
    return (
        select(EvaluationRow)
        .where(EvaluationRow.candidate_id == candidate_id, EvaluationRow.state == "settled")
        .order_by(EvaluationRow.ordinal)
    )
