"""`python -m workers.sweeper`, or a thread of the control worker: finds what is stuck, and nudges again."""

from __future__ import annotations

import signal
import threading

from sqlalchemy.exc import OperationalError

from db.engine import write_session
from db.transitions.jobs import sweep
from runtime.logs import configure_logging, get_logger
from runtime.settings import settings
from workers.context import Context

log = get_logger(__name__)


def sweep_once(context: Context) -> None:
    """One look: expired leases go back, ready and unclaimed work is nudged again. A database away is waited for."""
    try:
        with write_session(context.engine) as s:
            nudges = sweep(s)
    except OperationalError as error:
        log.warning("sweep.failed", error=str(error.orig))
        return
    if nudges:
        log.info("sweep.nudged", queues=sorted(set(nudges)))
        context.nudge(nudges)


def sweep_until(context: Context, stop: threading.Event) -> None:
    """Sweep at once, then every `sweep_interval_s`, until `stop` is set."""
    while True:
        try:
            sweep_once(context)
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
