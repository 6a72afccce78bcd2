"""Reads of projects: their quotas and their usage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.errors import NotFound
from db.ids import first_id
from db.tables.access import UsageRow
from db.tables.core import Project, RunRow
from db.views.access import ProjectView, Quota, Usage
from evolution.types import RunStatus

LIVE = tuple(status for status in RunStatus if not status.ended)


def month_of(moment: datetime) -> str:
    """Return the UTC month that a moment is charged to."""
    return f"{moment:%Y-%m}"


def view(row: Project) -> ProjectView:
    return ProjectView(
        id=row.id,
        name=row.name,
        weight=row.weight,
        quota=Quota(
            live_runs=row.max_live_runs,
            runs_per_day=row.max_runs_per_day,
            device_s_per_month=row.max_device_s_per_month,
            usd_per_month=row.max_usd_per_month,
        ),
        created_at=iso(row.created_at) or "",
        archived_at=iso(row.archived_at),
    )


def get(s: Session, project_id: str) -> ProjectView:
    """Raise NotFound."""
    row = s.get(Project, project_id)
    if row is None:
        raise NotFound("project", project_id)
    return view(row)


def list(s: Session, *, limit: int = 50, after: str | None = None) -> tuple[ProjectView, ...]:
    """List by id; `after` is the last id of the previous page."""
    query = select(Project).order_by(Project.id).limit(limit)
    if after is not None:
        query = query.where(Project.id > after)
    return tuple(view(row) for row in s.scalars(query))


def find(s: Session, name: str) -> str:
    """Return the id of the project with this id or name. Raise NotFound."""
    found = s.scalars(select(Project.id).where(or_(Project.id == name, Project.name == name)).limit(1)).one_or_none()
    if found is None:
        raise NotFound("project", name)
    return found


def usage(s: Session, project_id: str) -> Usage:
    """Return a project's usage: live Runs, Runs started today, and this month's charges (days and months in UTC)."""
    return usages(s, [project_id])[project_id]


def usages(s: Session, project_ids: Sequence[str]) -> dict[str, Usage]:
    """Return the usage of each of these projects, in three statements for any number."""
    moment = now(s)
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    month = month_of(moment)
    live = _counts(s, project_ids, RunRow.status.in_(LIVE))
    started = _counts(s, project_ids, RunRow.id >= first_id("run", today))
    query = select(UsageRow).where(UsageRow.project_id.in_(project_ids), UsageRow.month == month)
    charged = {row.project_id: row for row in s.scalars(query.execution_options(populate_existing=True))}
    return {
        id: Usage(
            live_runs=live.get(id, 0),
            runs_today=started.get(id, 0),
            month=month,
            device_s=charged[id].device_s if id in charged else 0.0,
            usd=charged[id].usd if id in charged else 0.0,
            tokens=charged[id].tokens if id in charged else 0,
        )
        for id in project_ids
    }


def _counts(s: Session, project_ids: Sequence[str], condition: ColumnElement[bool]) -> dict[str, int]:
    query = (
        select(RunRow.project_id, func.count())
        .where(RunRow.project_id.in_(project_ids), condition)
        .group_by(RunRow.project_id)
    )
    return dict(s.execute(query).all())
