"""Holding a device: checks share it, timing excludes every other user of it, across processes and containers.

One lock file per device in a folder that containers may share (WARPWRIGHT_LOCK_DIR, else /tmp/warpwright-locks); the
kernel drops a lock when its holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import LockTimeout

_POLL_S = 0.002


def reserve_core(cpus: set[int]) -> tuple[int, frozenset[int]]:
    """The core that timing uses (the last one allowed) and those for everything else (the same one if alone)."""
    core = max(cpus)
    return core, frozenset(cpus - {core}) or frozenset({core})


@contextmanager
def device_lock(key: str, *, exclusive: bool, timeout_s: float) -> Iterator[Callable[[], bool]]:
    """Hold the device `key`, alone or shared. Raises LockTimeout. Never to be entered twice by one thread.

    Not fair by itself: a stream of shared holders can delay an exclusive one, so those first pass a gate that an
    exclusive waiter keeps shut. Yields what tells whether somebody waits there: who holds the device for long, for
    work that can be broken off, then lets go and asks again.
    """
    deadline = time.monotonic() + timeout_s
    gate, body = _open(key, "gate"), _open(key, "lock")
    try:
        _acquire(gate, fcntl.LOCK_EX, deadline, key)
        _acquire(body, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, deadline, key)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield lambda: _is_shut(gate)
    finally:
        os.close(gate)
        os.close(body)


def _is_shut(gate: int) -> bool:
    try:
        fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(gate, fcntl.LOCK_UN)
    return False


def _acquire(fd: int, kind: int, deadline: float, key: str) -> None:
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockTimeout(f"device {key} is held by somebody else") from None
            time.sleep(_POLL_S)


def _open(key: str, suffix: str) -> int:
    folder = Path(os.environ.get("WARPWRIGHT_LOCK_DIR") or "/tmp/warpwright-locks")
    folder.mkdir(mode=0o1777, parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", key)[:60] + "-" + hashlib.sha256(key.encode()).hexdigest()[:12]
    return os.open(folder / f"{name}.{suffix}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
