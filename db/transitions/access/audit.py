"""Writes of the audit log, in the transaction of the operation, so that neither exists without the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.tables.access import AuditRow


def record(
    s: Session,
    action: str,
    *,
    project_id: str,
    actor: str,
    subject: str = "",
    address: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Append one line. `detail` is the change as JSON; never a secret, a source or a prompt."""
    s.add(
        AuditRow(
            id=new_id("aud"),
            at=now(s),
            project_id=project_id,
            actor=actor,
            action=action,
            subject=subject,
            address=address,
            detail=dict(detail or {}),
        )
    )
