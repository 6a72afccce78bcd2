"""The state of a worker process: settings, engine, name, judges, and a stop flag."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from db.engine import make_engine
from evaluator.types import DeviceKind
from runtime.nudge import nudge
from runtime.queues import BUILDS, DEVICES, PROPOSE
from runtime.settings import Settings
from workers.errors import JudgeFault
from workers.judge_process import JudgeProcess

if TYPE_CHECKING:
    from workers.graphs import Graphs
    from workers.proposers import Proposers


class Context:
    """The state of one worker process. Its judges belong to the one thread of a solo pool; the rest is thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.builds = False  # its judges do nothing else
        self._queues: tuple[str, ...] = ()  # that one judge serves, set by `begin`
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.stopping = threading.Event()
        self.registered: dict[str, float] = {}
        self.device_uuid: str | None = None
        self._judges: dict[DeviceKind, JudgeProcess] = {}
        self._graphs: Graphs | None = None  # set by `begin` of a worker that makes Proposals

    @cached_property
    def engine(self) -> Engine:
        return make_engine(self.settings.database_url)

    @cached_property
    def proposers(self) -> Proposers:
        from workers.proposers import Proposers  # noqa: PLC0415  takes a second; most workers never need it

        return Proposers(self.settings)

    def judge(self, kind: DeviceKind) -> JudgeProcess:
        """Return the judge of a device kind. Its `start` or first request starts it."""
        if kind not in self._judges:
            device = "cpu" if kind is DeviceKind.CPU else self.settings.gpu_device
            hidden = {endpoint.api_key_env for endpoint in self.settings.models if endpoint.api_key_env}
            command = self.settings.judge_command
            self._judges[kind] = JudgeProcess(
                device, command=command, builds=self.builds, hidden=hidden, stopping=self.stopping
            )
        return self._judges[kind]

    def begin(self, queue: str, *more: str) -> None:
        """Start the judge of a queue's Jobs, or the pool that traces references for Proposals, without waiting: either
        takes longer to start than this process. The judge of a device's queue may serve `more`: that of its builds.

        A failure occurs again in its first request, where it is reported.
        """
        self.builds = queue in BUILDS
        self._queues = (queue, *more)
        kind = {**BUILDS, **DEVICES}.get(queue)
        if kind is not None:
            with suppress(JudgeFault):
                self.judge(kind).start()
        elif queue == PROPOSE:
            from workers.graphs import shared  # noqa: PLC0415  the other workers never need it

            self._graphs = shared()
            if self.settings.trace_ahead:
                self._graphs.begin()

    def queues_with(self, queue: str) -> tuple[str, ...]:
        """Return the queues that this worker serves by turns when it is nudged for one of them."""
        return self._queues if queue in self._queues else (queue,)

    def interrupt(self) -> None:
        """Interrupt all judges. Safe in a signal handler."""
        for judge in list(self._judges.values()):
            judge.interrupt()

    def close(self) -> None:
        """Stop all judges, and the pool that traces references."""
        for judge in self._judges.values():
            judge.close()
        if self._graphs is not None:
            self._graphs.close()

    def nudge(self, queues: Iterable[str]) -> None:
        nudge(self.settings.redis_url, queues, expires_s=self.settings.nudge_expires_s)
