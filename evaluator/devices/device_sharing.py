"""A judge's turns on its device, which other judges may use, too.

Checks share the device, timing has it alone. Between two things that are timed, and between two requests of a check,
whoever waits has his turn: on a GPU several judges check kernels beside each other while one of them times, whose
rounds take a quarter of what judging a kernel takes. What is timed together is always timed in one turn.
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
    """Of one judge. `shared`, `alone` and what is called in them are for its own thread, `in_background` for others;
    none is entered twice by one thread. `still` is entered while others have the device: nothing of this judge's may
    run on it then."""

    def __init__(self, backend: DeviceBackend, while_waiting: WhileWaiting = nullcontext) -> None:
        self._backend, self._while_waiting = backend, while_waiting
        self._uuid = backend.describe().uuid
        self._hold: DeviceHold | None = None
        self._sharing = False
        self._thread = 0

    @contextmanager
    def in_background(self) -> Iterator[DeviceHold]:
        """While entered, nobody times anything. Whoever stays long asks the hold whether it is awaited."""
        with device_lock(self._uuid, exclusive=False, timeout_s=_LOCK_S) as hold:
            yield hold

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While entered nobody times anything, but where this judge calls `give_way`."""
        with self._held(exclusive=False):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While entered, nobody else uses the device, but where this judge is `beside` others."""
        with self._held(exclusive=True):
            yield

    def yield_to_waiters(self) -> None:
        """Let whoever waits for the device have it, if this thread shares it; return when it is shared again."""
        hold = self._hold
        if hold is None or threading.get_ident() != self._thread or not self._sharing:
            return
        if hold.is_awaited():
            self._take(hold, exclusive=False)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Within `alone`: what is done in here is not timed, and others may use the device. A CPU is not shared: what
        others do to its caches takes longer than they wait."""
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
