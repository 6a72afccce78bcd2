"""An HTTP client with one deadline for all its waits, even if the other side sends byte by byte.

Read timeouts start anew with each byte, so a server that sends one a second keeps a request alive for ever. Here each
connect, write and read waits only until the deadline, and the bytes that are read are counted.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import cache
from typing import Any

import httpcore2
import httpx2

from workers.deadline import Deadline


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline, max_bytes: int) -> None:
        self._inner, self._deadline, self._left = inner, deadline, max_bytes

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, _wait(self._deadline, timeout, httpcore2.ReadTimeout))
        self._left -= len(data)
        if self._left < 0:
            raise httpcore2.ReadError("the answer is longer than allowed")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _wait(self._deadline, timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        wait = _wait(self._deadline, timeout, httpcore2.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, wait), self._deadline, self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, deadline: Deadline, max_bytes: int) -> None:
        self._inner, self._deadline, self._max_bytes = httpcore2.SyncBackend(), deadline, max_bytes

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        wait = _wait(self._deadline, timeout, httpcore2.ConnectTimeout)
        stream = self._inner.connect_tcp(host, port, wait, local_address, socket_options)
        return _Stream(stream, self._deadline, self._max_bytes)


def _wait(deadline: Deadline, timeout: float | None, error: type[httpcore2.TimeoutException]) -> float:
    if deadline.passed:
        raise error("the deadline has passed")
    return deadline.remaining_s if timeout is None else min(timeout, deadline.remaining_s)


@cache
def _trust() -> ssl.SSLContext:
    """Read the certificates once: it takes long, and they do not change."""
    return httpx2.create_ssl_context()


def make_client(deadline: Deadline, *, max_bytes: int, stall_s: float) -> httpx2.Client:
    """Return a client for one call. It raises httpx2.ReadError beyond `max_bytes`, and a timeout after the deadline."""
    transport = httpx2.HTTPTransport(verify=_trust(), trust_env=False)
    # The pool takes a backend, but the transport has no argument for it; a test holds us to this one place.
    transport._pool = httpcore2.ConnectionPool(ssl_context=_trust(), network_backend=_Backend(deadline, max_bytes))
    timeout = httpx2.Timeout(connect=10.0, read=stall_s, write=30.0, pool=1.0)
    return httpx2.Client(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)
