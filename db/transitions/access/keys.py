"""Writes of API keys and of the browser sessions that they open."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import NotFound
from db.ids import new_id
from db.repositories.access import keys
from db.tables.access import ApiKeyRow, SessionRow
from db.tables.core import Project
from db.tokens import digest, new_key, new_secret
from db.views.access import ApiKeyView

USED_EVERY = timedelta(minutes=5)
"""The resolution of `last_used_at`, so that a busy key is not a busy row."""


def create_key(
    s: Session, project_id: str, *, name: str, scope: str, created_by: str, lifetime: timedelta | None = None
) -> tuple[ApiKeyView, str]:
    """Create a key of a project; return it with its secret, which cannot be read again.

    Raise NotFound for the project.
    """
    project = s.get(Project, project_id)
    if project is None:
        raise NotFound("project", project_id)
    prefix, secret = new_key()
    moment = now(s)
    row = ApiKeyRow(
        id=new_id("key"),
        project_id=project_id,
        name=name,
        prefix=prefix,
        digest=digest(secret),
        scope=scope,
        created_by=created_by,
        created_at=moment,
        expires_at=None if lifetime is None else moment + lifetime,
    )
    s.add(row)
    s.flush()
    return keys.view(row), secret


def revoke_key(s: Session, key_id: str, *, project_id: str | None = None) -> ApiKeyView:
    """End a key and every session that it opened; an ended key stays as it is. Raise NotFound."""
    row = s.get(ApiKeyRow, key_id, with_for_update=True)
    if row is None or (project_id is not None and row.project_id != project_id):
        raise NotFound("key", key_id)
    if row.revoked_at is None:
        row.revoked_at = now(s)
        s.execute(
            update(SessionRow)
            .where(SessionRow.key_id == key_id, SessionRow.ended_at.is_(None))
            .values(ended_at=row.revoked_at)
            .execution_options(synchronize_session=False)
        )
        s.flush()
    return keys.view(row)


def touch_key(s: Session, key_id: str) -> None:
    """Record the use of a key, to within a few minutes."""
    moment = now(s)
    s.execute(
        update(ApiKeyRow)
        .where(ApiKeyRow.id == key_id)
        .where(or_(ApiKeyRow.last_used_at.is_(None), ApiKeyRow.last_used_at < moment - USED_EVERY))
        .values(last_used_at=moment)
        .execution_options(synchronize_session=False)
    )


def open_session(
    s: Session,
    project_id: str,
    *,
    key_id: str | None,
    scope: str,
    actor: str,
    lifetime: timedelta,
    address: str = "",
    bound_to: str = "",
) -> tuple[str, str]:
    """Open a browser session; return its id and the cookie's secret. Sessions that ended long ago are deleted."""
    moment = now(s)
    s.execute(delete(SessionRow).where(SessionRow.expires_at < moment - timedelta(days=1)))
    secret = new_secret()
    row = SessionRow(
        id=new_id("sess"),
        project_id=project_id,
        key_id=key_id,
        digest=digest(secret, bound_to=bound_to),
        scope=scope,
        actor=actor,
        address=address,
        created_at=moment,
        expires_at=moment + lifetime,
    )
    s.add(row)
    s.flush()
    return row.id, secret


def end_session(s: Session, session_id: str) -> None:
    """Sign a browser out."""
    row = s.scalars(select(SessionRow).where(SessionRow.id == session_id)).one_or_none()
    if row is not None and row.ended_at is None:
        row.ended_at = now(s)
