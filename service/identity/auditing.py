"""Audit lines of requests: one each, in the transaction of the operation."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session

from db.transitions.access.audit import record
from service.identity.principal import Principal


def record_operation(
    session: Session, who: Principal, request: Request, subject: str, *, project_id: str | None = None, **detail: Any
) -> None:
    """Append this operation on `subject` (an id), with its actor and address."""
    route = request.scope.get("route")
    record(
        session,
        getattr(route, "operation_id", None) or getattr(route, "name", None) or request.method,
        project_id=project_id or who.project_id,
        actor=who.actor,
        subject=subject,
        address=who.address,
        detail=detail,
    )
