"""A point in time at which all waiting ends."""

from __future__ import annotations

import time


class Deadline:
    """A limit on all waits of one task together."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        return self.remaining_s <= 0.0

    def within(self, seconds: float) -> Deadline:
        """Return a deadline `seconds` from now, but not later than this one."""
        return Deadline(min(seconds, self.remaining_s))
