"""Reads of API keys and browser sessions: the grant behind a secret, and the ended ones."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from db.clock import iso, now
from db.errors import NotFound
from db.tables.access import ApiKeyRow, SessionRow
from db.tables.core import Project
from db.tokens import digest, prefix_of, same
from db.views.access import ApiKeyView, Grant


def view(row: ApiKeyRow) -> ApiKeyView:
    return ApiKeyView(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        prefix=f"ww_{row.prefix}",
        scope=row.scope,
        created_by=row.created_by,
        created_at=iso(row.created_at) or "",
        expires_at=iso(row.expires_at),
        last_used_at=iso(row.last_used_at),
        revoked_at=iso(row.revoked_at),
    )


def get(s: Session, key_id: str, *, project_id: str | None = None) -> ApiKeyView:
    """Raise NotFound."""
    row = s.get(ApiKeyRow, key_id)
    if row is None or (project_id is not None and row.project_id != project_id):
        raise NotFound("key", key_id)
    return view(row)


def list(s: Session, project_id: str | None, *, limit: int = 50, after: str | None = None) -> tuple[ApiKeyView, ...]:
    """List newest first, of one project or of all, revoked keys too; `after` is the last id of the previous page."""
    query = select(ApiKeyRow)
    if project_id is not None:
        query = query.where(ApiKeyRow.project_id == project_id)
    if after is not None:
        query = query.where(ApiKeyRow.id < after)
    return tuple(view(row) for row in s.scalars(query.order_by(ApiKeyRow.id.desc()).limit(limit)))


def _good_key(s: Session) -> ColumnElement[bool]:
    return and_(ApiKeyRow.revoked_at.is_(None), or_(ApiKeyRow.expires_at.is_(None), ApiKeyRow.expires_at > now(s)))


def _good_session(s: Session) -> ColumnElement[bool]:
    """Match sessions that have not ended, opened with a valid key or with the key of the settings."""
    return and_(
        SessionRow.ended_at.is_(None), SessionRow.expires_at > now(s), or_(SessionRow.key_id.is_(None), _good_key(s))
    )


def grant_of_key(s: Session, secret: str) -> Grant | None:
    """Return the grant of an API key; None where it is unknown, expired or revoked."""
    prefix = prefix_of(secret)
    if prefix is None:
        return None
    row = s.execute(
        select(ApiKeyRow)
        .join(Project, Project.id == ApiKeyRow.project_id)
        .where(ApiKeyRow.prefix == prefix, _good_key(s), Project.archived_at.is_(None))
    ).scalar_one_or_none()
    if row is None or not same(row.digest, digest(secret)):
        return None
    return Grant(
        credential=row.id,
        key_id=row.id,
        project_id=row.project_id,
        scope=row.scope,
        actor=row.id,
        used_at=row.last_used_at,
    )


def grant_of_session(s: Session, secret: str, *, bound_to: str = "") -> Grant | None:
    """Return the grant of a cookie. `bound_to` binds sessions that no key of the table opened."""
    digests = [digest(secret), digest(secret, bound_to=bound_to)] if bound_to else [digest(secret), ""]
    row = s.execute(
        select(SessionRow)
        .outerjoin(ApiKeyRow, ApiKeyRow.id == SessionRow.key_id)
        .join(Project, Project.id == SessionRow.project_id)
        .where(SessionRow.digest.in_(digests), _good_session(s), Project.archived_at.is_(None))
    ).scalar_one_or_none()
    if row is None or not same(row.digest, digests[row.key_id is None]):
        return None
    return Grant(
        credential=row.id,
        key_id=row.key_id,
        project_id=row.project_id,
        scope=row.scope,
        actor=row.actor,
        used_at=None,
    )


def ended(s: Session, credentials: Collection[str]) -> set[str]:
    """Return those of these keys and sessions that are no longer valid, in two queries for any number."""
    live = Project.archived_at.is_(None)
    good_keys = (
        select(ApiKeyRow.id)
        .join(Project, Project.id == ApiKeyRow.project_id)
        .where(ApiKeyRow.id.in_(credentials), _good_key(s), live)
    )
    good_sessions = (
        select(SessionRow.id)
        .outerjoin(ApiKeyRow, ApiKeyRow.id == SessionRow.key_id)
        .join(Project, Project.id == SessionRow.project_id)
        .where(SessionRow.id.in_(credentials), _good_session(s), live)
    )
    return set(credentials) - set(s.scalars(good_keys)) - set(s.scalars(good_sessions))


def operator_exists(s: Session) -> bool:
    """Tell whether a valid key of the table has the operator scope."""
    query = select(ApiKeyRow.id).where(ApiKeyRow.scope == "operator", _good_key(s)).limit(1)
    return s.scalars(query).one_or_none() is not None
