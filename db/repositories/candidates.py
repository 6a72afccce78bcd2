"""Reads of Candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, defer

from db.clock import iso
from db.errors import NotFound
from db.tables import CandidateRow, RunRow
from db.views import CandidateView
from evaluator.types import Candidate, Interval, Language, Ratio, Stage, Verdict


def ratio(row: CandidateRow) -> Ratio | None:
    """The newest judged headline against the fastest Baseline, or None."""
    if row.speedup is None or row.speedup_low is None or row.speedup_high is None:
        return None
    interval = Interval(low=row.speedup_low, high=row.speedup_high, confidence=row.confidence or 0.95)
    return Ratio(against="fastest", value=row.speedup, interval=interval)


def view(row: CandidateRow) -> CandidateView:
    """The picture of a row."""
    return CandidateView(
        id=row.id,
        run_id=row.run_id,
        problem_id=row.problem_id,
        number=row.number,
        hash=row.hash,
        language=Language(row.language),
        proposer=row.proposer,
        model=row.model,
        operator=row.operator,
        island=row.island,
        parents=tuple(row.parents),
        verdict=None if row.verdict is None else Verdict(row.verdict),
        stage=None if row.stage is None else Stage(row.stage),
        reason=row.reason,
        speedup=ratio(row),
        confirmed=row.confirmed,
        created_at=iso(row.created_at) or "",
        niche=row.niche,
        elite=row.elite,
        configuration=row.configuration,
    )


def _row(s: Session, candidate_id: str, project_id: str | None) -> CandidateRow:
    query = select(CandidateRow).where(CandidateRow.id == candidate_id)
    if project_id is not None:
        query = query.join(RunRow, RunRow.id == CandidateRow.run_id).where(RunRow.project_id == project_id)
    row = s.scalars(query).one_or_none()
    if row is None:
        raise NotFound("candidate", candidate_id)
    return row


def get(s: Session, candidate_id: str, *, project_id: str | None = None) -> CandidateView:
    """Raises NotFound."""
    return view(_row(s, candidate_id, project_id))


def several(s: Session, ids: Sequence[str]) -> tuple[CandidateView, ...]:
    """A page of Candidates by id, in no order; those that are not there are left out."""
    query = select(CandidateRow).options(defer(CandidateRow.source), defer(CandidateRow.build))
    return tuple(view(row) for row in s.scalars(query.where(CandidateRow.id.in_(ids))))


def source(s: Session, candidate_id: str, *, project_id: str | None = None) -> Candidate:
    """The Candidate with its source. Raises NotFound."""
    row = _row(s, candidate_id, project_id)
    return Candidate(
        source=row.source, language=Language(row.language), parents=tuple(row.parents), proposer=row.proposer
    )


def list(
    s: Session, run_id: str, *, limit: int = 50, after: str | None = None, by_speedup: bool = False
) -> tuple[CandidateView, ...]:
    """Newest first, `after` being the last id of the page before; or the fastest passed ones first, without paging."""
    query: Select[Any] = select(CandidateRow).options(defer(CandidateRow.source), defer(CandidateRow.build))
    query = query.where(CandidateRow.run_id == run_id)
    if by_speedup:
        query = query.where(CandidateRow.speedup.is_not(None)).order_by(CandidateRow.speedup.desc(), CandidateRow.id)
    elif after is not None:
        # By number, as it is ordered: a range of one index, however deep the page lies.
        last = select(CandidateRow.number).where(CandidateRow.id == after, CandidateRow.run_id == run_id)
        query = query.where(CandidateRow.number < last.scalar_subquery())
    if not by_speedup:
        query = query.order_by(CandidateRow.number.desc())
    return tuple(view(row) for row in s.scalars(query.limit(limit)))
