"""The Celery app: `celery -A workers.app worker -Q cpu --pool solo`. Its one task is a nudge to look at a queue."""

from __future__ import annotations

import gc
import threading
from functools import cache
from typing import Any

from celery import Celery, signals
from celery.exceptions import WorkerShutdown

from runtime.broker import celery_config
from runtime.logs import configure_logging
from runtime.queues import TASK_WORK
from runtime.settings import settings
from workers.context import Context
from workers.loop import work
from workers.presence import Presence

app = Celery("warpwright")
app.conf.update(celery_config(settings().redis_url))


_presences: list[Presence] = []
_busy: set[int] = set()
"""The threads that do work at the moment. Kept without a lock, since a signal handler reads it."""


@cache
def context() -> Context:
    """This process's context, made when it is first needed."""
    return Context(settings())


@app.task(name=TASK_WORK)  # type: ignore[untyped-decorator]
def work_task(queue: str) -> None:
    """There is work on a queue: do it until none is left."""
    _busy.add(threading.get_ident())
    try:
        work(context(), queue)
    finally:
        _busy.discard(threading.get_ident())


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _logging(**_: Any) -> None:
    configure_logging(settings().log_level, settings().log_format)


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _ready(sender: Any, **_: Any) -> None:
    """Look at our queues at once: what was waiting while no worker was there needs no other nudge.

    What is here by now stays for good: a garbage collector that looked through it at the end would take half a second.
    """
    gc.freeze()
    queues = sorted(queue.name for queue in sender.task_consumer.queues)
    context().nudge(queues)
    for queue in queues[:1]:
        presence = Presence(context(), queue)
        presence.start()
        _presences.append(presence)


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _shutting_down(**_: Any) -> None:
    """Claim nothing more, and break off what a judge is doing: its Job goes to another worker.

    Who has nothing to do ends at once: Celery itself would first wait for the next nudge, for seconds.
    """
    context().stopping.set()
    context().interrupt()
    if not _busy:
        raise WorkerShutdown(0)


@signals.worker_shutdown.connect  # type: ignore[untyped-decorator]
def _shutdown(**_: Any) -> None:
    while _presences:
        _presences.pop().stop()
    context().close()
