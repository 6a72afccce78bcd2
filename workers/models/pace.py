"""How fast an endpoint may be asked: its rate limits, and the rests that it asks for itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_S = 10.0
"""What a rate limit allows in this time may come at once."""


class Pace:
    """Virtual scheduling (GCRA) over requests and tokens a minute; None means unlimited. Thread-safe."""

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._clock, self._lock = clock, threading.Lock()
        self._every_s = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_s = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._requests_at = self._tokens_at = self._rest_until = 0.0

    def wait_s(self) -> float:
        """Seconds until another request may be made; 0.0 where it may be made now."""
        with self._lock:
            allowed = max(self._requests_at - max(BURST_S, self._every_s) + self._every_s, self._tokens_at - BURST_S)
            return max(0.0, max(allowed, self._rest_until) - self._clock())

    def begin(self) -> None:
        """A request is made now."""
        with self._lock:
            self._requests_at = max(self._requests_at, self._clock()) + self._every_s

    def used(self, tokens: int) -> None:
        """So many tokens went to and fro."""
        with self._lock:
            self._tokens_at = max(self._tokens_at, self._clock()) + tokens * self._token_s

    def rest(self, seconds: float) -> None:
        """The endpoint asked not to be asked for so long (429 with Retry-After): every thread keeps to it."""
        with self._lock:
            self._rest_until = max(self._rest_until, self._clock() + seconds)
