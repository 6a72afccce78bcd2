"""The pace of calls to an endpoint: its rate limits, and the pauses that it asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_S = 10.0
"""The calls that a rate limit allows in this time may come at once."""


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
        """Return the seconds until another request may be made, 0.0 for now."""
        with self._lock:
            allowed = max(self._requests_at - max(BURST_S, self._every_s) + self._every_s, self._tokens_at - BURST_S)
            return max(0.0, max(allowed, self._rest_until) - self._clock())

    def begin(self) -> None:
        """Count a request that is made now."""
        with self._lock:
            self._requests_at = max(self._requests_at, self._clock()) + self._every_s

    def used(self, tokens: int) -> None:
        """Count the tokens of a call, in both directions."""
        with self._lock:
            self._tokens_at = max(self._tokens_at, self._clock()) + tokens * self._token_s

    def rest(self, seconds: float) -> None:
        """Pause all threads for so long, as the endpoint asked (429 with Retry-After)."""
        with self._lock:
            self._rest_until = max(self._rest_until, self._clock() + seconds)
