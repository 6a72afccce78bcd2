"""Audit lines of requests: one each, in the transaction of the operation."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from db.transitions.access.audit import record
from service.identity.principal import Principal


def record_operation(
    session: Session, who: Principal, operation: str, subject: str, *, project_id: str | None = None, **detail: Any
) -> None:
    """Append an operation, named as in the API also where a page did it, on `subject` (an id)."""
    record(
        session,
        operation,
        project_id=project_id or who.project_id,
        actor=who.actor,
        subject=subject,
        address=who.address,
        detail=detail,
    )
