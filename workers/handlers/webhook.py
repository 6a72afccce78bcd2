"""Delivery of a webhook after the end of a Run."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_webhook
from db.views.rows import Job
from db.views.work import Delivery, WebhookWork
from workers.context import Context
from workers.errors import StepFailed
from workers.handlers.base import Settle
from workers.webhooks import DeliveryLimits, deliver


def handle(context: Context, job: Job, work: WebhookWork) -> Settle:
    """Deliver the webhook. A worker that stops leaves it to another one."""
    limits = DeliveryLimits(
        deadline_s=context.settings.webhook_deadline_s, allowed_hosts=context.settings.webhook_internal_hosts
    )
    delivery = deliver(work, limits, wait=context.stopping.wait)
    if context.stopping.is_set() and not delivery.delivered:
        raise StepFailed("the worker is stopping")
    return partial(_settle, job=job, delivery=delivery)


def _settle(s: Session, *, job: Job, delivery: Delivery) -> list[Nudge]:
    return settle_webhook(s, job, delivery)
