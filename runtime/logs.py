"""Structured logging for service and workers: events with bound ids, as console lines or JSON, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

NOISY = (
    *("httpx", "httpx2", "httpcore", "httpcore2", "openai"),
    *("celery.worker.strategy", "celery.worker.request", "celery.app.trace", "celery.redirected", "stamina"),
)
"""Loggers of every single message or request; we log the important parts ourselves."""


def configure_logging(level: str = "INFO", log_format: Literal["console", "json"] = "console") -> None:
    """Send structlog events and standard-library records to stderr, one line each, with the same processors.

    Ids are bound with `structlog.contextvars.bind_contextvars(run_id=...)` and appear on every event inside.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        # A plain traceback: the rich one prints local variables, secrets among them, and takes seconds to minutes.
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module: `log.info("job.settled", job_id=..., kind=...)`."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
