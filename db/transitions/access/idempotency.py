"""Answers to requests with an Idempotency-Key: find one, store one, drop old ones."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from db.clock import now
from db.tables.core import StoredAnswerRow
from db.views.rows import StoredAnswer
from evaluator.types import content_hash

KEPT = timedelta(days=2)


def claim(s: Session, project_id: str, key: str) -> StoredAnswer | None:
    """Return the answer stored under this key, or None; a concurrent request then waits for this transaction to end."""
    if s.get_bind().dialect.name == "postgresql":  # SQLite runs one write transaction at a time
        number = int.from_bytes(bytes.fromhex(content_hash(project_id, key))[:8], signed=True)
        s.execute(select(func.pg_advisory_xact_lock(number)))
    row = s.get(StoredAnswerRow, (project_id, key))
    if row is None:
        return None
    return StoredAnswer(fingerprint=row.fingerprint, status=row.status, location=row.location, body=row.body)


def store(s: Session, project_id: str, key: str, stored: StoredAnswer) -> None:
    """Store an answer for two days and drop older ones. `claim` it first."""
    moment = now(s)
    s.execute(delete(StoredAnswerRow).where(StoredAnswerRow.created_at < moment - KEPT))
    s.add(
        StoredAnswerRow(
            project_id=project_id,
            key=key,
            fingerprint=stored.fingerprint,
            status=stored.status,
            location=stored.location,
            body=stored.body,
            created_at=moment,
        )
    )
    s.flush()
