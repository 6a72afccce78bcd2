"""Reads of the audit log."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables.access import AuditRow
from db.views.access import AuditView


def list(s: Session, project_id: str | None, *, limit: int = 50, after: str | None = None) -> tuple[AuditView, ...]:
    """List newest first, of one project or of all; `after` is the last id of the previous page."""
    query = select(AuditRow)
    if project_id is not None:
        query = query.where(AuditRow.project_id == project_id)
    if after is not None:
        query = query.where(AuditRow.id < after)
    return tuple(
        AuditView(
            id=row.id,
            at=iso(row.at) or "",
            project_id=row.project_id,
            actor=row.actor,
            action=row.action,
            subject=row.subject,
            address=row.address,
            detail=row.detail,
        )
        for row in s.scalars(query.order_by(AuditRow.id.desc()).limit(limit))
    )
