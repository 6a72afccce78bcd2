"""Send nudges: "there is work on queue Q". A lost nudge loses nothing; the sweeper sends another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from celery import Celery
from kombu.exceptions import OperationalError

from runtime.broker import celery_config
from runtime.logs import get_logger
from runtime.queues import TASK_WORK

log = get_logger(__name__)

NUDGE_EXPIRES_S = 30.0


@cache
def _producer(redis_url: str) -> Celery:
    app = Celery("warpwright-nudges", set_as_current=False)
    app.conf.update(celery_config(redis_url))
    return app


def nudge(redis_url: str, queues: Iterable[str], *, expires_s: float = NUDGE_EXPIRES_S) -> bool:
    """Tell the workers of these queues that there is work; call it after the commit. Duplicates are sent once.

    Return False, after a warning in the log, where the broker could not be reached: the rows are safe in the
    database, and the sweeper nudges again within seconds. Thread-safe.
    """
    sent = True
    for queue in dict.fromkeys(queues):
        try:
            _producer(redis_url).send_task(
                TASK_WORK, args=[queue], queue=queue, expires=expires_s, retry=False, ignore_result=True
            )
        except (OperationalError, OSError) as error:
            log.warning("nudge.lost", queue=queue, error=str(error))
            sent = False
    return sent
