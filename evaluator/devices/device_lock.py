"""Lock a device: checks share it, timing excludes every other user, across processes and containers.

One lock file per device in a folder that containers may share (WARPWRIGHT_LOCK_DIR, else /tmp/warpwright-locks). The
kernel drops a lock when its holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from evaluator.errors import LockTimeout

_POLL_S = 0.0005

WhileWaiting = Callable[[], AbstractContextManager[None]]


class _Waiting(threading.local):
    seconds = 0.0


_waiting = _Waiting()


def waited_s() -> float:
    """Return the seconds that this thread has waited for devices so far."""
    return _waiting.seconds


class DeviceHold:
    """One thread's lock on the device `key`: made by `device_lock`."""

    def __init__(self, key: str, gate: int, body: int, timeout_s: float, while_waiting: WhileWaiting) -> None:
        self._key, self._gate, self._body, self._timeout_s, self._while_waiting = (
            key,
            gate,
            body,
            timeout_s,
            while_waiting,
        )

    def take(self, *, exclusive: bool) -> None:
        """Drop the lock if it is held, let waiters at the gate go first, and take it, exclusively or shared. Raise
        LockTimeout."""
        deadline = time.monotonic() + self._timeout_s
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(self._body, fcntl.LOCK_UN)
        try:
            if not (_try(self._gate, fcntl.LOCK_EX) and _try(self._body, kind)):
                start = time.monotonic()
                try:
                    with self._while_waiting():
                        self._acquire(self._gate, fcntl.LOCK_EX, deadline)
                        self._acquire(self._body, kind, deadline)
                finally:
                    _waiting.seconds += time.monotonic() - start
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def is_awaited(self) -> bool:
        """Return whether another user waits at the gate. A holder with long work that can be interrupted then drops the
        lock and takes it again."""
        if not _try(self._gate, fcntl.LOCK_SH):
            return True
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return False

    def _acquire(self, fd: int, kind: int, deadline: float) -> None:
        while not _try(fd, kind):
            if time.monotonic() > deadline:
                raise LockTimeout(f"device {self._key} is held by another user")
            time.sleep(_POLL_S)


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def device_lock(
    key: str, *, exclusive: bool, timeout_s: float, while_waiting: WhileWaiting = nullcontext
) -> Iterator[DeviceHold]:
    """Lock the device `key`, exclusively or shared. `while_waiting` is entered while others have it. One thread never
    enters it twice. Raise LockTimeout.

    A stream of shared holders could starve an exclusive one, so shared holders first pass a gate that an exclusive
    waiter keeps shut.
    """
    gate, body = _open(key, "gate"), _open(key, "lock")
    try:
        hold = DeviceHold(key, gate, body, timeout_s, while_waiting)
        hold.take(exclusive=exclusive)
        yield hold
    finally:
        os.close(gate)
        os.close(body)


def _open(key: str, suffix: str) -> int:
    folder = Path(os.environ.get("WARPWRIGHT_LOCK_DIR") or "/tmp/warpwright-locks")
    folder.mkdir(mode=0o1777, parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", key)[:60] + "-" + hashlib.sha256(key.encode()).hexdigest()[:12]
    return os.open(folder / f"{name}.{suffix}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
