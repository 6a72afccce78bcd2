"""Which request set things off: a Job that is ordered carries it, and so does every Job that follows from that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.orm import Session

_request: ContextVar[str | None] = ContextVar("warpwright_request_id", default=None)
_INHERITED = "warpwright_request_id"


def request_id() -> str | None:
    """The request that this thread or task answers, or None."""
    return _request.get()


@contextmanager
def originating(request_id: str) -> Iterator[None]:
    """Within the block, Jobs are ordered on behalf of this request."""
    token = _request.set(request_id)
    try:
        yield
    finally:
        _request.reset(token)


def inherit(s: Session, request_id: str | None) -> None:
    """What this transaction orders from here on is on behalf of this request: that of the Job being settled."""
    s.info[_INHERITED] = request_id


def of(s: Session) -> str | None:
    """On whose behalf a Job is ordered in this transaction."""
    found: str | None = s.info.get(_INHERITED) or _request.get()
    return found
