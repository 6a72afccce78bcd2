"""Reads of Runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.errors import NotFound
from db.tables.core import ProblemRow, RunRow
from evaluator.schema import from_json
from evaluator.types import DeviceKind
from evolution.types import Budget, EndReason, Run, RunConfig, RunKind, RunStatus, Spend


def wall_s(row: RunRow, moment: datetime) -> float:
    """Return seconds since the search started, without pauses; the value stands still once the Run has ended."""
    if row.started_at is None:
        return 0.0
    until = row.ended_at or row.paused_at or moment
    return max(0.0, (until - row.started_at).total_seconds() - row.paused_s)


def spend(row: RunRow, moment: datetime) -> Spend:
    """Return a Run's use so far."""
    return Spend(
        candidates=row.spent_candidates,
        tokens=row.spent_tokens,
        usd=row.spent_usd,
        device_s=row.spent_device_s,
        wall_s=wall_s(row, moment),
    )


def view(row: RunRow, moment: datetime) -> Run:
    """Build the view of a row at a moment."""
    return Run(
        id=row.id,
        project_id=row.project_id,
        problem_id=row.problem_id,
        kind=RunKind(row.kind),
        device_kind=DeviceKind(row.device_kind),
        status=RunStatus(row.status),
        budget=from_json(Budget, row.budget),
        config=from_json(RunConfig, row.config),
        spend=spend(row, moment),
        end_reason=None if row.end_reason is None else EndReason(row.end_reason),
        message=row.message,
        champion_id=row.champion_id,
        best_id=row.best_id,
        forked_from=row.forked_from,
        last_seq=row.last_seq,
        created_at=iso(row.created_at) or "",
        started_at=iso(row.started_at),
        ended_at=iso(row.ended_at),
    )


def get(s: Session, run_id: str, *, project_id: str | None = None) -> Run:
    """Raise NotFound."""
    s.flush()
    row = s.get(RunRow, run_id, populate_existing=True)
    if row is None or (project_id is not None and row.project_id != project_id):
        raise NotFound("run", run_id)
    return view(row, now(s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filter of a list. `text` is searched in the Problem's name; by default only searches are listed."""

    kind: RunKind | None = RunKind.OPTIMISE
    problem_id: str | None = None
    device_kind: DeviceKind | None = None
    statuses: Sequence[RunStatus] = ()
    text: str | None = None


ALL = Filter()


def list(
    s: Session, project_id: str, *, limit: int = 50, after: str | None = None, only: Filter = ALL
) -> tuple[Run, ...]:
    """List newest first; `after` is the last id of the previous page."""
    query = select(RunRow).where(RunRow.project_id == project_id)
    if only.kind is not None:
        query = query.where(RunRow.kind == only.kind)
    if only.problem_id is not None:
        query = query.where(RunRow.problem_id == only.problem_id)
    if only.device_kind is not None:
        query = query.where(RunRow.device_kind == only.device_kind)
    if only.statuses:
        query = query.where(RunRow.status.in_(only.statuses))
    if only.text:
        query = query.join(ProblemRow, ProblemRow.id == RunRow.problem_id).where(
            ProblemRow.name.icontains(only.text, autoescape=True)
        )
    if after is not None:
        query = query.where(RunRow.id < after)
    moment = now(s)
    return tuple(view(row, moment) for row in s.scalars(query.order_by(RunRow.id.desc()).limit(limit)))
