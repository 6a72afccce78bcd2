"""The Celery app: `celery -A workers.app worker -Q cpu --pool solo`. Its one task is a nudge to work on a queue."""

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
"""The threads that work at the moment. It has no lock, since a signal handler reads it."""


@cache
def context() -> Context:
    """Return this process's context, created by the first call."""
    return Context(settings())


@app.task(name=TASK_WORK)  # type: ignore[untyped-decorator]
def work_task(queue: str) -> None:
    """Do the work of a queue until none is left."""
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
    """Nudge our own queues: Jobs may have waited since before this worker started.

    All objects so far live until the end. Freeze them, or the garbage collector takes half a second for them at exit.
    """
    gc.freeze()
    queues = sorted(queue.name for queue in sender.task_consumer.queues)
    context().nudge(queues)
    for queue in queues[:1]:
        presence = Presence(context(), context().queues_with(queue)[0])
        presence.start()
        _presences.append(presence)


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _shutting_down(**_: Any) -> None:
    """Claim nothing more, and interrupt the judges: their Jobs go to other workers.

    An idle worker ends at once: Celery itself would wait for the next nudge, for seconds.
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
