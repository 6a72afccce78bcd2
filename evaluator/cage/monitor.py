"""Drain the output of children and watch their memory in one thread of the judge.

A child never blocks on its output and never fills a disk: everything is read, and only a head and a tail are kept.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from evaluator.cage import freezer
from evaluator.errors import CageError

_WATCH_EVERY_S = 0.1
_MOST_SHARE = 0.1  # of the judge's time, whose threads wait for this one's while it computes
_RESTING_EVERY = 10  # looks at the others, for one at a child that is stopped


class Capture:
    """The head and the tail of a byte stream, within a fixed size."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = max(limit_bytes // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        room = self._half - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """Return the kept text, undecodable bytes escaped, with a note where something is left out."""
        tail = self._tail[-self._half :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        middle = f"\n... {left_out} bytes left out ...\n".encode() if left_out else b""
        return bytes(self._head + middle + tail).decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class Monitored:
    """One monitored child. `root` is the first process of its namespace."""

    output_fd: int
    capture: Capture
    root: int = 0
    pidfd: int = -1
    resident_limit: int | None = None
    thread_limit: int = 0
    over: str = ""
    killed_for_memory: Callable[[], bool] | None = None  # asks whether the kernel killed it for its memory
    kill_signal: signal.Signals = signal.SIGKILL
    gone: threading.Event = field(default_factory=threading.Event)
    resting: bool = False  # it is stopped, so it is looked at rarely: a timer of its own may have continued it

    def watch(self, root: int, pidfd: int, resident_limit: int | None, thread_limit: int) -> None:
        """Watch process `root`; kill it by `pidfd` when its descendants exceed a limit. `over` then names the limit."""
        self.root = root
        self.pidfd = pidfd
        self.resident_limit = resident_limit
        self.thread_limit = thread_limit


class Monitor:
    """The thread. It sleeps in the kernel while no child prints, and polls memory only while children live."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._registered: set[int] = set()
        self._pending: list[tuple[bool, Monitored]] = []
        self._all: list[Monitored] = []
        self._lock = threading.Lock()
        self._pauses = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="cage-monitor", daemon=True)
        self._thread.start()

    def add(self, monitored: Monitored) -> None:
        """Start to drain and watch a child."""
        os.set_blocking(monitored.output_fd, False)
        self._tell(True, monitored)

    def remove(self, monitored: Monitored) -> None:
        """Stop watching. Read the rest of the pipe without waiting for its end, and close the descriptor."""
        self._tell(False, monitored)
        monitored.gone.wait(5.0)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Do not watch memory while entered. Output is still drained."""
        with self._lock:
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
            self._wake()

    def close(self) -> None:
        self._closing = True
        self._wake()
        self._thread.join(5.0)
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _tell(self, adding: bool, monitored: Monitored) -> None:
        with self._lock:
            self._pending.append((adding, monitored))
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    def _run(self) -> None:
        next_watch, looks = 0.0, 0
        while not self._closing:
            watching = bool(self._all) and not self._pauses
            for key, _ in self._selector.select(_WATCH_EVERY_S if watching else None):
                if key.data is None:
                    os.read(self._wake_read, 4096)
                else:
                    self._drain(key.data, 16)
            self._take_orders()
            now = time.monotonic()
            if now >= next_watch and not self._pauses:
                looks += 1
                for monitored in self._all:
                    if not monitored.resting or looks % _RESTING_EVERY == 0:
                        with contextlib.suppress(CageError):  # the next look comes soon
                            _watch_use(monitored)
                end = time.monotonic()
                next_watch = end + max(_WATCH_EVERY_S, (end - now) / _MOST_SHARE)
        for monitored in list(self._all):
            self._drop(monitored)

    def _take_orders(self) -> None:
        with self._lock:
            orders, self._pending = self._pending, []
        for adding, monitored in orders:
            if adding:
                self._all.append(monitored)
                self._selector.register(monitored.output_fd, selectors.EVENT_READ, monitored)
                self._registered.add(monitored.output_fd)
            elif monitored in self._all:
                self._drop(monitored)
            else:
                monitored.gone.set()

    def _drop(self, monitored: Monitored) -> None:
        self._all.remove(monitored)
        self._drain(monitored, 64)
        self._forget(monitored)
        os.close(monitored.output_fd)
        monitored.gone.set()

    def _drain(self, monitored: Monitored, rounds: int) -> None:
        for _ in range(rounds):
            try:
                data = os.read(monitored.output_fd, 1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._forget(monitored)
                return
            monitored.capture.add(data)

    def _forget(self, monitored: Monitored) -> None:
        if monitored.output_fd in self._registered:
            self._registered.remove(monitored.output_fd)
            self._selector.unregister(monitored.output_fd)


def _watch_use(monitored: Monitored) -> None:
    if not monitored.root or monitored.over:
        return
    threads, resident = freezer.usage(monitored.root)
    if threads > monitored.thread_limit:  # the kernel's own limit does not bind root
        monitored.over = "processes"
    elif (
        monitored.resident_limit is not None
        and resident > monitored.resident_limit
        and freezer.proportional_bytes(monitored.root) > monitored.resident_limit  # forks share most of their pages
    ):
        monitored.over = "memory"
    if monitored.over:
        kill(monitored.pidfd, monitored.kill_signal)


def kill(pidfd: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process by descriptor; ignore a process that has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)
