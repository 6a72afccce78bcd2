"""Children that are started before anybody needs them, since a GPU's driver takes a quarter of a second for one.

They are made beside builds and checks. While anything is timed, by this judge or by another one on the device, whoever
is not ready is stopped, and goes on afterwards.
They know nothing yet: source and built files come when one is taken.
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
from evaluator.sandbox.pool import ChildPool, check_files, packed
from evaluator.sandbox.process import Asked, ChildProcess, milliseconds_until

AT_ONCE = 2
_FILES_S = 20.0
_BEGIN_S, _READY_S = 0.05, 30.0  # how long somebody who takes one waits for the thread, and for a child
_LOOK_MS = 4  # how often the thread looks whether somebody else waits for the device


class Awaited(Protocol):
    """A device that is held, shared (`device_lock.DeviceHold`)."""

    def is_awaited(self) -> bool:
        """Whether somebody waits to have it alone."""


class _Nobodys:
    def is_awaited(self) -> bool:
        return False


Held = Callable[[], AbstractContextManager[Awaited]]
"""Holds the device while entered."""


def _held_already() -> AbstractContextManager[Awaited]:
    return nullcontext(_Nobodys())


class Spares:
    """Up to `wanted` children of a pool, `at_once` of them being started; `set_up` asks a fresh one to make itself
    ready (it may raise ChildFault). May be used from several threads. A machine on which children cannot be started
    ahead has none."""

    def __init__(
        self,
        pool: Callable[[], ChildPool],
        set_up: Callable[[ChildProcess], Asked],
        wanted: int,
        held: Held = _held_already,
        at_once: int = AT_ONCE,
    ) -> None:
        self._pool, self._set_up, self._wanted, self._held, self._at_once = pool, set_up, wanted, held, at_once
        self._changed = threading.Condition()
        self._children: list[ChildProcess] = []
        self._rising: list[tuple[ChildProcess, Asked]] = []  # the thread's own while there is work
        self._running = self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="starts-children")
        self._work: Future[None] | None = None
        self._halt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def take(self, name: str, files: Mapping[str, bytes]) -> ChildProcess | None:
        """A child with these files in its job folder, or None where none is ready or soon will be."""
        checked = check_files(files)
        while True:
            with self._changed:
                if self._at_work:
                    self._changed.wait_for(lambda: self._children or self._running or not self._at_work, _BEGIN_S)
                    # Whoever waits for the device's lock is not waited for: who takes a child may hold it.
                    self._changed.wait_for(lambda: self._children or not self._running, _READY_S)
                child = self._children.pop() if self._children else None
            if child is None:
                return None
            child.name = name
            try:
                _provide(child, checked)
            except (CageError, ChildFault):
                child.close()  # it died while it waited: somebody else's doing, so the next one is tried
            else:
                return child

    def begin(self) -> None:
        """Have what is missing started beside whatever is done next, with the device held, until `halt`. Whatever fails
        there fails again where it is told."""
        self._begin(self._held)

    def _begin(self, held: Held) -> None:
        if self._closed or self._at_work or len(self._children) >= self._wanted:
            return
        with suppress(BlockingIOError):
            os.eventfd_read(self._halt)
        self._work = self._thread.submit(self._fill, held)

    def halt(self) -> None:
        """Return when nothing of a child that is not ready runs any more: it goes on at the next `begin`."""
        if self._work is not None:
            os.eventfd_write(self._halt, 1)
            self._work.result()

    def fill(self) -> None:
        """Start what is missing; return when it is ready. Who calls this holds the device."""
        self._begin(_held_already)
        if self._work is not None:
            self._work.result()

    def empty(self) -> None:
        """End those that wait."""
        self.halt()
        with self._changed:
            children, self._children = [*self._children, *(child for child, _ in self._rising)], []
            self._rising = []
        for child in children:
            child.close()

    def close(self) -> None:
        """End them, and start no more."""
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

    def _fill(self, held: Held) -> None:
        with suppress(LockTimeout):
            while not self._fill_while_held(held):
                pass  # whoever waited has it now, and is waited for

    def _fill_while_held(self, held: Held) -> bool:
        """Whether nothing is left to do; else somebody waited for the device."""
        with held() as hold:
            self._run(running=True)
            try:
                for index, (child, asked) in enumerate(self._rising):
                    self._rising[index] = child, child.go_on(asked)
                return self._fill_until_halt(hold)
            finally:
                self._run(running=False)

    def _run(self, *, running: bool) -> None:
        with self._changed:
            self._running = running
            self._changed.notify_all()

    def _fill_until_halt(self, hold: Awaited) -> bool:
        """Whether nothing is left to do, or `halt` was called; else somebody waits for the device."""
        more = True
        while True:
            while more and len(self._rising) < min(self._at_once, self._wanted - len(self._children)):
                if self._halted(0):
                    break
                more = self._start()
            if not self._rising:
                return True
            left_ms = milliseconds_until(min(asked.deadline for _, asked in self._rising))
            if (halted := self._halted(min(_LOOK_MS, left_ms))) or hold.is_awaited():
                break
            more = self._collect() and more
        self._stop_rising()
        return halted

    def _stop_rising(self) -> None:
        for child, asked in list(self._rising):
            try:
                child.freeze()
            except ChildFault:
                self._rising.remove((child, asked))
                child.close()

    def _halted(self, most_ms: int) -> bool:
        """Whether to stop. Waits until that or something else has happened, or a child's time is up."""
        poll = select.poll()
        for sign in [self._halt, *(sign for child, _ in self._rising for sign in child.signs)]:
            poll.register(sign, select.POLLIN)
        return any(fd == self._halt for fd, _ in poll.poll(most_ms))

    def _start(self) -> bool:
        """Whether a child is being started now."""
        try:
            child = self._pool().start_empty(name="spare")
        except CageError:
            return False
        try:
            self._rising.append((child, self._set_up(child)))
        except (CageError, ChildFault):
            child.close()
            return False
        return True

    def _collect(self) -> bool:
        """Take over who is ready; whether nobody failed."""
        well = True
        for child, asked in list(self._rising):
            if not child.has_answered(asked):
                continue
            self._rising.remove((child, asked))
            try:
                child.answer(asked)
            except ChildFault:
                child.close()
                well = False
                continue
            with self._changed:
                self._children.append(child)
                self._changed.notify_all()
        return well


def _provide(child: ChildProcess, files: Mapping[str, bytes]) -> None:
    """Hand the files of a job to a child that was started without. Raises ChildFault."""
    sizes, payload = packed(files)
    try:
        child.request("files", timeout_s=_FILES_S, fds=[payload], files=sizes)
    finally:
        os.close(payload)
