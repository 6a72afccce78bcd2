"""Reads of webhooks, for the worker that sends one and for the Run's owner."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.clock import iso
from db.errors import NotFound
from db.repositories import runs
from db.tables.webhooks import WebhookRow
from db.views.rows import WebhookView
from db.views.work import WebhookWork
from evaluator.schema import to_json
from evaluator.types import canonical_json


def work(s: Session, run_id: str) -> WebhookWork:
    """Return the delivery to make: the Run as it ended."""
    row = s.get_one(WebhookRow, run_id)
    delivery_id = f"{run_id}-{row.deliveries}"
    body = {"type": "run.ended", "delivery_id": delivery_id, "run": to_json(runs.get(s, run_id))}
    return WebhookWork(
        run_id=run_id, url=row.url, secret=row.secret, delivery_id=delivery_id, body=canonical_json(body)
    )


def get(s: Session, run_id: str) -> WebhookView:
    """Return the webhook of a Run, without its secret. Raise NotFound."""
    row = s.get(WebhookRow, run_id)
    if row is None:
        raise NotFound("webhook", run_id)
    return WebhookView(
        url=row.url,
        state=row.state,
        attempts=row.attempts,
        status=row.status,
        error=row.error,
        settled_at=iso(row.settled_at),
    )
