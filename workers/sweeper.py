"""The sweeper finds stuck work and nudges again: `python -m workers.sweeper`, or a thread of the control worker."""

from __future__ import annotations

import signal
import threading
import time
from datetime import UTC, datetime, timedelta

from sqlalchemy.exc import OperationalError

from db.engine import write_session
from db.transitions.work.jobs import sweep
from db.transitions.work.retention import drop_samples, gather_statistics
from runtime.logs import configure_logging, get_logger
from runtime.settings import settings
from workers.context import Context

TIDY_EVERY_S = 3600.0

log = get_logger(__name__)


def sweep_once(context: Context) -> None:
    """Requeue Jobs with expired leases and nudge for unclaimed ones. Log it if the database does not answer."""
    try:
        with write_session(context.engine) as s:
            nudges = sweep(s)
    except OperationalError as error:
        log.warning("sweep.failed", error=str(error.orig))
        return
    if nudges:
        log.info("sweep.nudged", queues=sorted(set(nudges)))
        context.nudge(nudges)


def tidy(context: Context, stop: threading.Event) -> None:
    """Drop raw samples older than `sample_days` in batches, until none is left or `stop` is set."""
    with write_session(context.engine) as s:
        gather_statistics(s)
    if not context.settings.sample_days:
        return
    before = datetime.now(UTC) - timedelta(days=context.settings.sample_days)
    place: str | None = ""
    batches = 0
    while place is not None and not stop.is_set():
        with write_session(context.engine) as s:
            place = drop_samples(s, before, after=place)
        batches += place is not None
    if batches:
        log.info("samples.tidied", before=before.isoformat(timespec="seconds"), batches=batches)


def sweep_until(context: Context, stop: threading.Event) -> None:
    """Sweep at once, then every `sweep_interval_s`, and tidy every hour, until `stop` is set."""
    tidy_at = time.monotonic()
    while True:
        try:
            sweep_once(context)
            if time.monotonic() >= tidy_at:
                tidy_at += TIDY_EVERY_S
                tidy(context, stop)
        except Exception:
            log.exception("sweep.broke")
        if stop.wait(context.settings.sweep_interval_s):
            return


def main() -> None:
    """Sweep until SIGTERM or SIGINT."""
    configure_logging(settings().log_level, settings().log_format)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sweep_until(Context(settings()), stop)


if __name__ == "__main__":
    main()
