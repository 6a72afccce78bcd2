"""A circuit breaker: an endpoint that keeps failing gets no calls for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FAILURES = 5
OPEN_S = 30.0


class Breaker:
    """Opens after FAILURES failed calls in a row; after `open_s` one call may try again. Thread-safe."""

    def __init__(self, *, open_s: float = OPEN_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock, self._open_s = clock, threading.Lock(), open_s
        self._failures = 0
        self._open_until = 0.0

    def wait_s(self) -> float:
        """Return the seconds until a call may be made, 0.0 for now."""
        with self._lock:
            return 0.0 if self._failures < FAILURES else max(0.0, self._open_until - self._clock())

    def allows(self) -> bool:
        """Return true if a call may be made now. When an open breaker's time is up, one caller is let through."""
        with self._lock:
            if self._failures < FAILURES:
                return True
            if self._clock() < self._open_until:
                return False
            self._open_until = self._clock() + self._open_s
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._open_until = self._clock() + self._open_s
