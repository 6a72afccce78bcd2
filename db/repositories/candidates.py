"""Reads of Candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, and_, or_, select
from sqlalchemy.orm import Session

from db.clock import iso
from db.errors import NotFound
from db.tables.core import CandidateRow
from db.views.rows import CandidateView
from db.visible import candidate_visible
from evaluator.types import Candidate, Interval, Language, Ratio, Stage, Verdict
from evolution.arms import way_of
from evolution.types import Arm, Operator

LISTED = (
    CandidateRow.id,
    CandidateRow.run_id,
    CandidateRow.problem_id,
    CandidateRow.number,
    CandidateRow.hash,
    CandidateRow.language,
    CandidateRow.proposer,
    CandidateRow.model,
    CandidateRow.operator,
    CandidateRow.variant,
    CandidateRow.island,
    CandidateRow.parents,
    CandidateRow.verdict,
    CandidateRow.stage,
    CandidateRow.reason,
    CandidateRow.speedup,
    CandidateRow.speedup_low,
    CandidateRow.speedup_high,
    CandidateRow.confidence,
    CandidateRow.confirmed,
    CandidateRow.created_at,
    CandidateRow.niche,
    CandidateRow.elite,
    CandidateRow.outdated,
    CandidateRow.configuration,
)
"""The columns of `view`. Lists select these alone: no sources, and no session objects for hundreds of rows."""

Listed = CandidateRow | Row[Any]


def ratio(row: Listed) -> Ratio | None:
    """Return the newest judged headline against the fastest Baseline, or None."""
    if row.speedup is None or row.speedup_low is None or row.speedup_high is None:
        return None
    interval = Interval(low=row.speedup_low, high=row.speedup_high, confidence=row.confidence or 0.95)
    return Ratio(against="fastest", value=row.speedup, interval=interval)


def view(row: Listed) -> CandidateView:
    """Build the view of a row, or of its LISTED columns."""
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
        way=way_of(_arm(row)),
        niche=row.niche,
        elite=row.elite,
        outdated=row.outdated,
        configuration=row.configuration,
    )


def _arm(row: Listed) -> Arm:
    return Arm(proposer=row.proposer, model=row.model, operator=Operator(row.operator), variant=row.variant)


def _row(s: Session, candidate_id: str, project_id: str | None) -> CandidateRow:
    query = select(CandidateRow).where(CandidateRow.id == candidate_id)
    if project_id is not None:
        query = query.where(candidate_visible(project_id))
    row = s.scalars(query).one_or_none()
    if row is None:
        raise NotFound("candidate", candidate_id)
    return row


def get(s: Session, candidate_id: str, *, project_id: str | None = None) -> CandidateView:
    """Raise NotFound."""
    return view(_row(s, candidate_id, project_id))


def get_many(s: Session, ids: Sequence[str], *, project_id: str | None = None) -> tuple[CandidateView, ...]:
    """Return a page of Candidates by id, in no order. Ids that this project may not see are left out."""
    query = select(*LISTED)
    if project_id is not None:
        query = query.where(candidate_visible(project_id))
    return tuple(view(row) for row in s.execute(query.where(CandidateRow.id.in_(ids))))


def source(s: Session, candidate_id: str, *, project_id: str | None = None) -> Candidate:
    """Return the Candidate with its source. Raise NotFound."""
    row = _row(s, candidate_id, project_id)
    return Candidate(
        source=row.source, language=Language(row.language), parents=tuple(row.parents), proposer=row.proposer
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filter of a list; None leaves a field open. `proposer` is the name of a Proposer or of a model."""

    verdict: Verdict | None = None
    language: Language | None = None
    proposer: str | None = None
    confirmed: bool | None = None
    island: int | None = None


ALL = Filter()


def list(
    s: Session,
    run_id: str,
    *,
    limit: int = 50,
    after: str | None = None,
    by_speedup: bool = False,
    only: Filter = ALL,
) -> tuple[CandidateView, ...]:
    """List newest first, or the passed ones, fastest first; `after` is the last id of the previous page.

    The page, filters included, is picked from an index alone; only then are its rows read. A filter without a match
    costs a walk over a narrow index, never over a hundred thousand sources.
    """
    picked = _only(select(CandidateRow.number).where(CandidateRow.run_id == run_id), only)
    fastest = (CandidateRow.speedup.desc(), CandidateRow.number)
    order: tuple[Any, ...] = fastest if by_speedup else (CandidateRow.number.desc(),)
    if by_speedup:
        picked = picked.where(CandidateRow.speedup.is_not(None))
    if after is not None:
        last = s.execute(
            select(CandidateRow.number, CandidateRow.speedup).where(
                CandidateRow.id == after, CandidateRow.run_id == run_id
            )
        ).one_or_none()
        if last is None or (by_speedup and last.speedup is None):
            return ()
        picked = picked.where(
            or_(
                CandidateRow.speedup < last.speedup,
                and_(CandidateRow.speedup == last.speedup, CandidateRow.number > last.number),
            )
            if by_speedup
            else CandidateRow.number < last.number
        )
    numbers = s.scalars(picked.order_by(*order).limit(limit)).all()
    rows = s.execute(
        select(*LISTED).where(CandidateRow.run_id == run_id, CandidateRow.number.in_(numbers)).order_by(*order)
    )
    return tuple(view(row) for row in rows)


def _only(query: Select[Any], only: Filter) -> Select[Any]:
    if only.verdict is not None:
        query = query.where(CandidateRow.verdict == only.verdict)
    if only.language is not None:
        query = query.where(CandidateRow.language == only.language)
    if only.proposer is not None:
        query = query.where(or_(CandidateRow.proposer == only.proposer, CandidateRow.model == only.proposer))
    if only.confirmed is not None:
        query = query.where(CandidateRow.confirmed.is_(only.confirmed))
    if only.island is not None:
        query = query.where(CandidateRow.island == only.island)
    return query
