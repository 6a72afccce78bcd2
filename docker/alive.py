"""The health check of a worker's container: is the worker's main process there, and does the broker answer?

    python docker/alive.py QUEUE

Exits 0 where both hold. Standard library only: it must stay cheap, and say nothing about work that waits.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit


def worker_runs(queue: str, proc: Path = Path("/proc")) -> bool:
    """Return True if some process was started as `python -m workers QUEUE`."""
    wanted = [b"-m", b"workers", queue.encode()]
    for entry in proc.glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended in between
        if arguments[1:4] == wanted:
            return True
    return False


def broker_listens(url: str, timeout_s: float = 3.0) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=timeout_s).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    healthy = worker_runs(sys.argv[1]) and broker_listens(os.environ.get("WARPWRIGHT_REDIS_URL", "redis://127.0.0.1"))
    sys.exit(0 if healthy else 1)
