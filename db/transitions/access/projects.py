"""Writes of projects, and their quotas: checked before a Run starts and before money is spent."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, ScalarSelect, and_, func, literal, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import Conflict, NotFound, QuotaExceeded
from db.ids import new_id
from db.repositories.access import projects
from db.repositories.access.projects import month_of
from db.tables.access import UsageRow
from db.tables.core import Project, ProposalRow, RunRow
from db.views.access import ProjectView, Quota


def create_project(s: Session, name: str, *, weight: float = 1.0, quota: Quota | None = None) -> ProjectView:
    """Create a project. Raise Conflict where the name is taken."""
    _check_name(s, name, None)
    row = Project(id=new_id("proj"), name=name, weight=weight, created_at=now(s))
    _limit(row, quota or Quota())
    s.add(row)
    _flush(s, name)
    return projects.view(row)


def change_project(
    s: Session, project_id: str, *, name: str | None = None, weight: float | None = None, quota: Quota | None = None
) -> ProjectView:
    """Change the name, weight or quota; None leaves a field as it is. Raise NotFound, Conflict (the name is taken)."""
    row = lock_project(s, project_id)
    if name is not None:
        _check_name(s, name, project_id)
        row.name = name
    if weight is not None:
        row.weight = weight
    if quota is not None:
        _limit(row, quota)
    _flush(s, name or row.name)
    return projects.view(row)


def archive_project(s: Session, project_id: str, *, archived: bool = True) -> ProjectView:
    """Close a project, or open it again.

    The keys and sessions of a closed project are refused, and none of its work begins.
    """
    row = lock_project(s, project_id)
    if not archived:
        row.archived_at = None
    elif row.archived_at is None:
        row.archived_at = now(s)
    s.flush()
    return projects.view(row)


def _check_name(s: Session, name: str, own_id: str | None) -> None:
    taken = s.scalars(select(Project.id).where((Project.name == name) | (Project.id == name))).first()
    if taken not in (None, own_id):
        raise _taken(name)


def _flush(s: Session, name: str) -> None:
    """Write a project. Raise Conflict where another transaction has taken the name since it was checked."""
    try:
        s.flush()
    except IntegrityError as error:
        raise _taken(name) from error


def _taken(name: str) -> Conflict:
    return Conflict(f"there is a project {name!r} already; take another name")


def _limit(row: Project, quota: Quota) -> None:
    row.max_live_runs, row.max_runs_per_day = quota.live_runs, quota.runs_per_day
    row.max_device_s_per_month, row.max_usd_per_month = quota.device_s_per_month, quota.usd_per_month


def lock_project(s: Session, project_id: str) -> Project:
    """Lock a project's row, as every start of a Run in it does. Raise NotFound."""
    row = s.scalars(
        select(Project)
        .where(Project.id == project_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        raise NotFound("project", project_id)
    return row


def check_quota(s: Session, project_id: str) -> None:
    """Raise QuotaExceeded unless the project may have one more live Run; raise NotFound.

    The project's row stays locked, so that two Runs that start at once are counted one after the other.
    """
    quota = projects.view(lock_project(s, project_id)).quota
    used = projects.usage(s, project_id)
    moment = now(s)
    _hold_to("live_runs", used.live_runs, quota.live_runs, None)
    _hold_to("runs_per_day", used.runs_today, quota.runs_per_day, _next_day(moment))
    _check_spending(s, project_id, quota)


def check_spending(s: Session, project_id: str) -> None:
    """Raise QuotaExceeded unless the project may go on spending this month; raise NotFound."""
    _check_spending(s, project_id, projects.get(s, project_id).quota)


def _check_spending(s: Session, project_id: str, quota: Quota) -> None:
    used = projects.usage(s, project_id)
    resets = _next_month(now(s))
    _hold_to("device_s_per_month", used.device_s, quota.device_s_per_month, resets)
    _hold_to("usd_per_month", used.usd, quota.usd_per_month, resets)


def _hold_to(name: str, used: float, allowed: float | None, resets_at: datetime | None) -> None:
    if allowed is not None and used >= allowed:
        raise QuotaExceeded(name, used=used, allowed=allowed, resets_at=resets_at)


def _next_day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def _next_month(moment: datetime) -> datetime:
    return (moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)


def charge(s: Session, project_id: str, *, device_s: float = 0.0, usd: float = 0.0, tokens: int = 0) -> None:
    """Add to a project's use of this month. Locks last in a transaction, to prevent deadlocks."""
    if not (device_s or usd or tokens):
        return
    insert = postgresql.insert if s.get_bind().dialect.name == "postgresql" else sqlite.insert
    added = {"device_s": device_s, "usd": usd, "tokens": tokens}
    s.execute(
        insert(UsageRow)
        .values(project_id=project_id, month=month_of(now(s)), **added)
        .on_conflict_do_update(
            index_elements=["project_id", "month"],
            set_={name: getattr(UsageRow, name) + value for name, value in added.items()},
        )
    )


def usd_left_of(s: Session, project_id: str, proposal_id: str) -> float | None:
    """Return the dollars that a project may still spend this month, less other Proposals' reservations; None: no limit.

    The month's row stays locked, so that two calls at once cannot both be granted the rest.
    """
    allowed = s.scalars(select(Project.max_usd_per_month).where(Project.id == project_id)).one()
    if allowed is None:
        return None
    _lock_usage(s, project_id)
    held = s.scalars(
        select(func.coalesce(func.sum(ProposalRow.held_usd), 0.0))
        .join(RunRow, RunRow.id == ProposalRow.run_id)
        .where(RunRow.project_id == project_id, ProposalRow.outcome.is_(None), ProposalRow.id != proposal_id)
    ).one()
    return max(0.0, allowed - projects.usage(s, project_id).usd - held)


def _lock_usage(s: Session, project_id: str) -> None:
    insert = postgresql.insert if s.get_bind().dialect.name == "postgresql" else sqlite.insert
    s.execute(
        insert(UsageRow)
        .values(project_id=project_id, month=month_of(now(s)), device_s=0.0, usd=0.0, tokens=0)
        .on_conflict_do_update(index_elements=["project_id", "month"], set_={"tokens": UsageRow.tokens})
    )


def spent(s: Session) -> ScalarSelect[str]:
    """Return the ids of the projects that may begin no work now: closed, or over a quota of the month."""
    return spent_in(literal(month_of(now(s))))


def spent_in(month: ColumnElement[str]) -> ScalarSelect[str]:
    """Return the same for a month."""
    usage = and_(UsageRow.project_id == Project.id, UsageRow.month == month)
    return select(Project.id).outerjoin(UsageRow, usage).where(_is_spent()).scalar_subquery()


def _is_spent() -> ColumnElement[bool]:
    return or_(
        Project.archived_at.is_not(None),
        func.coalesce(UsageRow.device_s, 0.0) >= Project.max_device_s_per_month,
        func.coalesce(UsageRow.usd, 0.0) >= Project.max_usd_per_month,
    )
