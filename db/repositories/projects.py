"""Reads of projects: their quotas, and how much of them is used."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from db.access_tables import UsageRow
from db.access_views import ProjectView, Quota, Usage
from db.clock import iso, now
from db.errors import NotFound
from db.ids import first_id
from db.tables import Project, RunRow
from evolution.types import RunStatus

LIVE = tuple(status for status in RunStatus if not status.ended)


def month_of(moment: datetime) -> str:
    """The month that something is charged to, in UTC."""
    return f"{moment:%Y-%m}"


def view(row: Project) -> ProjectView:
    """The picture of a row."""
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
    """Raises NotFound."""
    row = s.get(Project, project_id)
    if row is None:
        raise NotFound("project", project_id)
    return view(row)


def list(s: Session, *, limit: int = 50, after: str | None = None) -> tuple[ProjectView, ...]:
    """By id; `after` is the last id of the page before."""
    query = select(Project).order_by(Project.id).limit(limit)
    if after is not None:
        query = query.where(Project.id > after)
    return tuple(view(row) for row in s.scalars(query))


def find(s: Session, name: str) -> str:
    """The id of the project with this id or name. Raises NotFound."""
    found = s.scalars(select(Project.id).where(or_(Project.id == name, Project.name == name)).limit(1)).one_or_none()
    if found is None:
        raise NotFound("project", name)
    return found


def usage(s: Session, project_id: str) -> Usage:
    """What a project uses: Runs that live now, Runs started today, and what was charged this month (both in UTC)."""
    moment = now(s)
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    charged = s.get(UsageRow, (project_id, month_of(moment)), populate_existing=True)
    return Usage(
        live_runs=_count(s, RunRow.project_id == project_id, RunRow.status.in_(LIVE)),
        runs_today=_count(s, RunRow.project_id == project_id, RunRow.id >= first_id("run", today)),
        month=month_of(moment),
        device_s=charged.device_s if charged is not None else 0.0,
        usd=charged.usd if charged is not None else 0.0,
        tokens=charged.tokens if charged is not None else 0,
    )


def _count(s: Session, *conditions: object) -> int:
    query = select(func.count()).select_from(RunRow).where(*conditions)  # type: ignore[arg-type]
    return s.scalars(query).one()
