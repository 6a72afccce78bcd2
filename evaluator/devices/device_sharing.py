"""Share a device among judges.

Checks share the device; timing has it exclusively. Between two timed sessions, and between two requests of a check,
waiters go first. So several judges check kernels on one GPU while another one times, because timed rounds are a quarter
of judging a kernel. Contenders that are compared are always timed under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from evaluator.devices.base import DeviceBackend
from evaluator.devices.device_lock import DeviceHold, WhileWaiting, device_lock
from evaluator.types import DeviceKind

_LOCK_S = 600.0


class DeviceSharing:
    """One judge's use of its device. `shared`, `exclusive` and methods called within them are for its own thread,
    `in_background` for others. No thread enters one twice. `while_waiting` is entered while others have the device: it
    stops everything of this judge on it."""

    def __init__(self, backend: DeviceBackend, while_waiting: WhileWaiting = nullcontext) -> None:
        self._backend, self._while_waiting = backend, while_waiting
        self._uuid = backend.describe().uuid
        self._hold: DeviceHold | None = None
        self._sharing = False
        self._thread = 0

    @contextmanager
    def in_background(self) -> Iterator[DeviceHold]:
        """Keep the device from being timed on. A long user asks the hold whether it is awaited."""
        with device_lock(self._uuid, exclusive=False, timeout_s=_LOCK_S) as hold:
            yield hold

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Keep the device from being timed on, except during `yield_to_waiters`."""
        with self._held(exclusive=False):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep all others off the device, except while it is `released`."""
        with self._held(exclusive=True):
            yield

    def yield_to_waiters(self) -> None:
        """Let waiters have the device, if this thread shares it; return when it is shared again."""
        hold = self._hold
        if hold is None or threading.get_ident() != self._thread or not self._sharing:
            return
        if hold.is_awaited():
            self._take(hold, exclusive=False)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let others use the device within `exclusive`, while nothing is timed. A CPU is not released: the disturbance
        of its caches outlasts the others' wait."""
        if self._hold is None or self._sharing or self._backend.kind is DeviceKind.CPU:
            yield
            return
        self._take(self._hold, exclusive=False)
        try:
            yield
        finally:
            self._take(self._hold, exclusive=True)

    @contextmanager
    def _held(self, *, exclusive: bool) -> Iterator[None]:
        with device_lock(self._uuid, exclusive=exclusive, timeout_s=_LOCK_S, while_waiting=self._while_waiting) as hold:
            self._hold, self._sharing, self._thread = hold, not exclusive, threading.get_ident()
            try:
                yield
            finally:
                self._hold = None

    def _take(self, hold: DeviceHold, *, exclusive: bool) -> None:
        self._backend.synchronize()
        hold.take(exclusive=exclusive)
        self._sharing = not exclusive
