"""The HTTP request behind a Job. A Job passes it on to every Job that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.orm import Session

_request: ContextVar[str | None] = ContextVar("warpwright_request_id", default=None)
_INHERITED = "warpwright_request_id"


def request_id() -> str | None:
    """Return the request that this thread or task answers, or None."""
    return _request.get()


@contextmanager
def originating(request_id: str) -> Iterator[None]:
    """Give this request to every Job that is enqueued inside the block."""
    token = _request.set(request_id)
    try:
        yield
    finally:
        _request.reset(token)


def inherit(s: Session, request_id: str | None) -> None:
    """Give a request to every Job that this transaction enqueues from here on: that of the Job being settled."""
    s.info[_INHERITED] = request_id


def of(s: Session) -> str | None:
    """Return the request that this transaction's Jobs are enqueued for."""
    found: str | None = s.info.get(_INHERITED) or _request.get()
    return found
