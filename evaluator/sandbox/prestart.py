"""Start children before they are needed, since a GPU's driver takes a quarter of a second for each.

They start in parallel with builds and checks. While this judge or another one times on the device, children that are
not ready are stopped; they continue afterwards. They know nothing yet: a child gets source and built files when it is
taken.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Protocol

from evaluator.errors import CageError, ChildFault, LockTimeout
from evaluator.sandbox.channel import milliseconds_until
from evaluator.sandbox.pool import ChildPool, check_files, pack_files
from evaluator.sandbox.process import ChildProcess, PendingRequest

MAX_STARTING = 2
_FILES_S = 20.0
_BEGIN_S, _READY_S = 0.05, 30.0  # `take` waits this long for the thread to start, and for a child
_LOOK_MS = 4  # the thread checks this often whether another process waits for the device


class DeviceHold(Protocol):
    """A shared hold of a device (`DeviceHold`)."""

    def is_awaited(self) -> bool:
        """Return true if another process waits for exclusive access."""


class _UncontestedHold:
    def is_awaited(self) -> bool:
        return False


HoldDevice = Callable[[], AbstractContextManager[DeviceHold]]
"""Holds the device while entered."""


def _already_held() -> AbstractContextManager[DeviceHold]:
    return nullcontext(_UncontestedHold())


class PrestartPool:
    """Keep up to `wanted` ready children of a pool, and start `max_starting` of them at a time.

    `set_up` asks a new child to make itself ready, and may raise ChildFault. The pool may be used from several threads.
    It stays empty on a machine that cannot start children early.
    """

    def __init__(
        self,
        pool: Callable[[], ChildPool],
        set_up: Callable[[ChildProcess], PendingRequest],
        wanted: int,
        held: HoldDevice = _already_held,
        max_starting: int = MAX_STARTING,
    ) -> None:
        self._pool, self._set_up, self._held = pool, set_up, held
        self._wanted, self._max_starting = wanted, max_starting
        self._changed = threading.Condition()
        self._children: list[ChildProcess] = []
        self._starting: list[tuple[ChildProcess, PendingRequest]] = []  # only the thread's while it works
        self._running = self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="starts-children")
        self._work: Future[None] | None = None
        self._halt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def take(self, name: str, files: Mapping[str, bytes]) -> ChildProcess | None:
        """Return a child with these files in its job folder, or None if none is ready or soon will be."""
        checked = check_files(files)
        while True:
            with self._changed:
                if self._at_work:
                    self._changed.wait_for(lambda: self._children or self._running or not self._at_work, _BEGIN_S)
                    # Do not wait for a thread that waits for the device's lock: this caller may hold it.
                    self._changed.wait_for(lambda: self._children or not self._running, _READY_S)
                child = self._children.pop() if self._children else None
            if child is None:
                return None
            child.name = name
            try:
                _provide(child, checked)
            except (CageError, ChildFault):
                child.close()  # it died while waiting, through no fault of this job: try the next one
            else:
                return child

    def begin(self) -> None:
        """Start missing children in the background, while holding the device, until `halt`.

        A failure there is ignored: it occurs again where it is reported.
        """
        self._begin(self._held)

    def _begin(self, held: HoldDevice) -> None:
        if self._closed or self._at_work or len(self._children) >= self._wanted:
            return
        with suppress(BlockingIOError):
            os.eventfd_read(self._halt)
        self._work = self._thread.submit(self._fill, held)

    def halt(self) -> None:
        """Return once no unready child runs any more. They continue at the next `begin`."""
        if self._work is not None:
            os.eventfd_write(self._halt, 1)
            self._work.result()

    def fill(self) -> None:
        """Start missing children and return when they are ready. The caller holds the device."""
        self._begin(_already_held)
        if self._work is not None:
            self._work.result()

    def empty(self) -> None:
        """End the waiting children."""
        self.halt()
        with self._changed:
            children, self._children = [*self._children, *(child for child, _ in self._starting)], []
            self._starting = []
        for child in children:
            child.close()

    def close(self) -> None:
        """End the waiting children, and start no more."""
        if self._closed:
            return
        self._closed = True
        self.empty()
        self._thread.shutdown()
        os.close(self._halt)

    @property
    def _at_work(self) -> bool:
        return self._work is not None and not self._work.done()

    # ------------------------------------------------------------ the thread

    def _fill(self, held: HoldDevice) -> None:
        with suppress(LockTimeout):
            while not self._fill_while_held(held):
                pass  # another process waited for the device: wait until it is done

    def _fill_while_held(self, held: HoldDevice) -> bool:
        """Return true if nothing is left to do, false if another process waited for the device."""
        with held() as hold:
            self._run(running=True)
            try:
                for index, (child, asked) in enumerate(self._starting):
                    self._starting[index] = child, child.resume(asked)
                return self._fill_until_halt(hold)
            finally:
                self._run(running=False)

    def _run(self, *, running: bool) -> None:
        with self._changed:
            self._running = running
            self._changed.notify_all()

    def _fill_until_halt(self, hold: DeviceHold) -> bool:
        """Return true if nothing is left to do or `halt` was called, false if another process waits for the device."""
        more = True
        while True:
            while more and len(self._starting) < min(self._max_starting, self._wanted - len(self._children)):
                if self._halted(0):
                    break
                more = self._start()
            if not self._starting:
                return True
            left_ms = milliseconds_until(min(asked.deadline for _, asked in self._starting))
            if (halted := self._halted(min(_LOOK_MS, left_ms))) or hold.is_awaited():
                break
            more = self._collect() and more
        self._freeze_starting()
        return halted

    def _freeze_starting(self) -> None:
        for child, asked in list(self._starting):
            try:
                child.freeze()
            except ChildFault:
                self._starting.remove((child, asked))
                child.close()

    def _halted(self, most_ms: int) -> bool:
        """Wait until `halt`, another event or a child's deadline; return true for `halt`."""
        poll = select.poll()
        for fd in [self._halt, *(fd for child, _ in self._starting for fd in child.reply_fds)]:
            poll.register(fd, select.POLLIN)
        return any(fd == self._halt for fd, _ in poll.poll(most_ms))

    def _start(self) -> bool:
        """Start one child; return true if it is on its way."""
        try:
            child = self._pool().start_without_files(name="spare")
        except CageError:
            return False
        try:
            self._starting.append((child, self._set_up(child)))
        except (CageError, ChildFault):
            child.close()
            return False
        return True

    def _collect(self) -> bool:
        """Take over the ready children; return true if none failed."""
        well = True
        for child, asked in list(self._starting):
            if not child.has_reply(asked):
                continue
            self._starting.remove((child, asked))
            try:
                child.receive_reply(asked)
            except ChildFault:
                child.close()
                well = False
                continue
            with self._changed:
                self._children.append(child)
                self._changed.notify_all()
        return well


def _provide(child: ChildProcess, files: Mapping[str, bytes]) -> None:
    """Send the files of a job to a child that was started without. Raise ChildFault."""
    sizes, payload = pack_files(files)
    try:
        child.request("files", timeout_s=_FILES_S, fds=[payload], files=sizes)
    finally:
        os.close(payload)
