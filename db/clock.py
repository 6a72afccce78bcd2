"""The time, as this room sees it: aware UTC datetimes. A test sets `session.info["now"]` to move it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy.orm import Session


def now(s: Session) -> datetime:
    """The present moment of a session: the wall clock, unless the session was given its own."""
    clock: Callable[[], datetime] | None = s.info.get("now")
    return clock() if clock is not None else datetime.now(UTC)


@contextmanager
def frozen_time(s: Session) -> Iterator[None]:
    """Within it, `now` stands still: what is decided by the time can be decided again from what was written."""
    moment, before = now(s), s.info.get("now")
    s.info["now"] = lambda: moment
    try:
        yield
    finally:
        s.info["now"] = before


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with microseconds, or None."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
