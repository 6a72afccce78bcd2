"""The lock of a data folder, so that one embedded stack runs on it, and the address of that stack."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from warpwright.errors import BadUsage

PRIVATE = 0o700
LOOK_S = 0.2
"""Pause between looks at the processes that still use a stack."""


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A running stack: its owner's process id, its service's address, and the queues that its workers serve.

    `stays` marks one of `warpwright serve`; `gpu` is the device of the GPU worker where one was named; `threads` the
    CPU threads that it judges with. `ending` marks one whose owner only waits for the processes that joined it.
    """

    pid: int
    url: str
    stays: bool
    workers: tuple[str, ...] = ()
    gpu: str | None = None
    ending: bool = False
    threads: str = "1"

    def serves(self, workers: Sequence[str], gpu: str | None, threads: str | None = None) -> bool:
        """Return True if this stack does the work of one with these workers, on this GPU, and admits more."""
        if self.ending:
            return False
        if threads not in (None, self.threads):  # else its ratios would be of another number than was asked for
            return False
        return self.stays or (set(workers) <= set(self.workers) and gpu in (None, self.gpu))


class DataFolder:
    """A data folder and its lock. The kernel frees the lock when its process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        self._info = path / "stack.json"
        self._users = path / "stack.users"
        try:
            path.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
            (path / "logs").mkdir(exist_ok=True)
        except OSError as error:
            raise BadUsage(
                f"the data folder {path} cannot be used ({error.strerror}); name another with --data"
            ) from error

    def acquire(self, *, wait: bool = False) -> bool:
        """Lock the folder for this process. Return False if another process holds it and `wait` is False."""
        lock = (self.path / "stack.lock").open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            lock.close()
            return False
        self._lock = lock
        with contextlib.suppress(FileNotFoundError):
            self._info.unlink()  # a killed holder left its own
        return True

    def publish(self, url: str, *, stays: bool, workers: Sequence[str] = (), gpu: str | None = None) -> None:
        """Write the address of this folder's service for other processes."""
        threads = os.environ.get("WARPWRIGHT_CPU_THREADS") or "1"  # its judges inherit it
        self._write(RunningStack(os.getpid(), url, stays, tuple(workers), gpu, threads=threads))

    def _write(self, stack: RunningStack) -> None:
        temporary = self._info.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(stack)), encoding="utf-8")
        temporary.replace(self._info)

    def running(self) -> RunningStack | None:
        """Return the stack that another process has published, or None."""
        try:
            found = json.loads(self._info.read_text(encoding="utf-8"))
            return RunningStack(**{**found, "workers": tuple(found.get("workers", ()))})
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    @contextlib.contextmanager
    def joined(self) -> Iterator[RunningStack | None]:
        """Yield the stack of another process, which `withdraw` keeps up for this block; None if there is none.

        What a killed owner left is none: its address may be another user's by now.
        """
        with self._users.open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:  # its owner is stopping it
                yield None
                return
            yield self.running() if self._is_held() else None

    def _is_held(self) -> bool:
        """Return True if a process holds the folder's lock."""
        with (self.path / "stack.lock").open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not see each other
            except OSError:
                return True
        return False

    def withdraw(self, waiting: Callable[[], None], *, at_most_s: float | None = None) -> None:
        """Let no other process join this folder's stack, and wait until those that did have ended.

        `waiting` is called first if there is one to wait for. After `at_most_s` they are waited for no longer.
        """
        until = None if at_most_s is None else time.monotonic() + at_most_s
        pause, told = threading.Event(), False
        with self._users.open("a", encoding="utf-8") as lock:
            while not _taken(lock):
                if not told:
                    told = True
                    if (stack := self.running()) is not None:
                        self._write(replace(stack, ending=True))
                    waiting()
                if until is not None and time.monotonic() >= until:
                    break
                pause.wait(LOOK_S)
            with contextlib.suppress(FileNotFoundError):
                self._info.unlink()

    def release(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                self._info.unlink()
            self._lock.close()
            self._lock = None

    @contextlib.contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[bool]:
        """Lock the folder for a `with` block; yield False if another process holds it."""
        acquired = self.acquire(wait=wait)
        try:
            yield acquired
        finally:
            if acquired:
                self.release()


def _taken(lock: IO[str]) -> bool:
    """Return True if the file could be locked for this process alone."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
