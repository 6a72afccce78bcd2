"""A thread of every worker that reports its presence and its device's telemetry. Idle workers show only through it."""

from __future__ import annotations

import threading

from sqlalchemy.exc import SQLAlchemyError

from db.engine import write_session
from db.transitions.work.workers import deregister, record_heartbeat
from runtime.logs import get_logger
from runtime.queues import CPU, CUDA, device_kind
from workers.context import Context
from workers.telemetry import CpuTelemetry, GpuTelemetry, telemetry_of

EVERY_S = 20.0
JOIN_S = 5.0

log = get_logger(__name__)


class Presence:
    """Reports to the database every `every_s` seconds from `start` to `stop`. A failed report is not retried."""

    def __init__(self, context: Context, queue: str, *, every_s: float = EVERY_S) -> None:
        self._context, self._queue, self._every_s = context, queue, every_s
        self._stop = threading.Event()
        self._telemetry: CpuTelemetry | GpuTelemetry | None = None
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and remove this worker from the database."""
        self._stop.set()
        self._thread.join(JOIN_S)
        try:
            with write_session(self._context.engine) as s:
                deregister(s, self._context.name)
        except SQLAlchemyError as error:
            log.info("presence.not_ended", error=str(error)[:200])

    def report(self) -> None:
        """Report once. Raises SQLAlchemyError."""
        uuid = self._context.device_uuid
        if self._telemetry is None and uuid is not None and self._queue in (CPU, CUDA):
            self._telemetry = telemetry_of(device_kind(self._queue), uuid)
        observed = self._telemetry.read() if self._telemetry is not None else None
        with write_session(self._context.engine) as s:
            record_heartbeat(s, self._context.name, self._queue, device_uuid=uuid, observed=observed)

    def _run(self) -> None:
        while True:
            try:
                self.report()
            except SQLAlchemyError as error:
                log.info("presence.not_told", error=str(error)[:200])
            if self._stop.wait(self._every_s):
                return
