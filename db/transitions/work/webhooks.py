"""Webhooks: set with a Run, enqueued when it ends, settled after delivery or failure."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.clock import now
from db.packing import clean
from db.queues import Nudge
from db.tables.queue import JobRow
from db.tables.webhooks import WebhookRow
from db.transitions.work.enqueue import finish_job
from db.transitions.work.locks import lock_job
from db.views.rows import Job
from db.views.work import Delivery


def set_webhook(s: Session, run_id: str, url: str, secret: str) -> None:
    """Have the end of a Run posted to `url`, signed with `secret`."""
    s.add(WebhookRow(run_id=run_id, url=url, secret=secret))
    s.flush()


def settle_webhook(s: Session, job: Job, delivery: Delivery) -> list[Nudge]:
    """Store the outcome of a delivery. The Job is not retried: the worker has made all attempts."""
    row = lock_job(s, job)
    if row is not None:
        close_webhook(s, row, delivery)
    return []


def close_webhook(s: Session, row: JobRow, delivery: Delivery) -> None:
    """Settle the webhook of a locked, claimed Job."""
    finish_job(s, row)
    found = s.get_one(WebhookRow, row.subject_id)
    found.state = "delivered" if delivery.delivered else "failed"
    found.attempts += delivery.attempts
    found.status, found.error, found.settled_at = delivery.status, clean(delivery.error), now(s)
