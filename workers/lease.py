"""The lease that keeps a claimed Job ours while it is worked on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from db.engine import write_session
from db.transitions.work.jobs import heartbeat
from db.views.rows import Job
from runtime.logs import get_logger

log = get_logger(__name__)


class Lease:
    """Renews a Job's lease in a thread until the `with` block ends or the lease is lost.

    On a loss, `lost` is set and `on_lost` is called once in that thread, so that useless work can be interrupted.
    """

    def __init__(
        self, engine: Engine, job: Job, *, lease_s: float, every_s: float, on_lost: Callable[[], None] | None = None
    ) -> None:
        self.lost = threading.Event()
        self._engine, self._job = engine, job
        self._lease_s, self._every_s, self._on_lost = lease_s, every_s, on_lost
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{job.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._done.wait(self._every_s):
            try:
                with write_session(self._engine) as s:
                    ours = heartbeat(s, self._job, self._lease_s)
            except OperationalError as error:
                log.warning("lease.not_renewed", job_id=self._job.id, error=str(error.orig))
                continue
            if not ours:
                self.lost.set()
                if self._on_lost is not None:
                    self._on_lost()
                return
