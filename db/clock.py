"""The time as aware UTC datetimes. A test sets `session.info["now"]` to move it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy.orm import Session


def now(s: Session) -> datetime:
    """Return the session's time: the wall clock, unless the session has a time of its own."""
    clock: Callable[[], datetime] | None = s.info.get("now")
    return clock() if clock is not None else datetime.now(UTC)


@contextmanager
def frozen_time(s: Session) -> Iterator[None]:
    """Freeze `now` inside the block, so that a replay can take every time-dependent decision again."""
    moment, before = now(s), s.info.get("now")
    s.info["now"] = lambda: moment
    try:
        yield
    finally:
        s.info["now"] = before


def iso(moment: datetime | None) -> str | None:
    """Format a moment as ISO 8601 in UTC with microseconds; None stays None."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
