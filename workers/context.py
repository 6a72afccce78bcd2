"""What a worker process has: settings, engine, its name, its judges, and whether it is to stop."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from db.engine import make_engine
from evaluator.types import DeviceKind
from runtime.nudge import nudge
from runtime.settings import Settings
from workers.judge_process import JudgeProcess

if TYPE_CHECKING:
    from workers.proposers import Proposers


class Context:
    """One per worker process. Judges belong to the one thread of a solo pool; all else is thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.stopping = threading.Event()
        self.registered: dict[str, float] = {}
        self.device_uuid: str | None = None
        self._judges: dict[DeviceKind, JudgeProcess] = {}

    @cached_property
    def engine(self) -> Engine:
        return make_engine(self.settings.database_url)

    @cached_property
    def proposers(self) -> Proposers:
        from workers.proposers import Proposers  # noqa: PLC0415  models' clients take a second to import; most never ask

        return Proposers(self.settings)

    def judge(self, kind: DeviceKind) -> JudgeProcess:
        """The judge for a device kind, started by its first request."""
        if kind not in self._judges:
            device = "cpu" if kind is DeviceKind.CPU else self.settings.gpu_device
            hidden = {endpoint.api_key_env for endpoint in self.settings.models if endpoint.api_key_env}
            command = self.settings.judge_command
            self._judges[kind] = JudgeProcess(device, command=command, hidden=hidden, stopping=self.stopping)
        return self._judges[kind]

    def interrupt(self) -> None:
        """Break off what the judges are doing; safe from a signal handler."""
        for judge in list(self._judges.values()):
            judge.interrupt()

    def close(self) -> None:
        """End the judges."""
        for judge in self._judges.values():
            judge.close()

    def nudge(self, queues: Iterable[str]) -> None:
        nudge(self.settings.redis_url, queues, expires_s=self.settings.nudge_expires_s)
