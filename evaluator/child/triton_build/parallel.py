"""Run Triton's compilations in several processes: its front end is Python, so threads wait for each other.

`Compilations` collects what launches ask for. `run` then forks workers that take one compilation after the other and
leave the results in Triton's cache folder. This process works beside them, and reads their results from the cache at
the end. It compiles itself what a worker did not finish. Nothing of a worker's is trusted: all run in one cage.
"""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from evaluator.child import confine
from evaluator.child.protocol.framing import flush_output

_CORES_A_PROCESS, _MOST_PROCESSES = 4, 6  # several children build at once on one machine
_AT_LEAST = 2  # where there are so many cores
_NUMBER_BYTES = 4
_MOST_SHARED = 8192  # numbers that fit into a pipe that nobody reads yet
_MOST_WORDS = 2500


class WorkerFailed(Exception):
    """An exception in a worker, by what `said` and `compile_error` return for it there."""

    def __init__(self, said: str, compile_error: str) -> None:
        super().__init__(said)
        self.said, self.compile_error = said, compile_error


def said(error: BaseException) -> str:
    return error.said if isinstance(error, WorkerFailed) else f"{type(error).__name__}: {error}"[:500]


def compile_error(error: BaseException) -> str:
    """Return the words of Triton's compiler, with the line; "" for another error."""
    from triton.compiler.errors import CompilationError  # noqa: PLC0415  only a child that judges Triton loads it

    if isinstance(error, WorkerFailed):
        return error.compile_error
    return f"{type(error).__name__}: {error}"[:_MOST_WORDS] if isinstance(error, CompilationError) else ""


def processes() -> int:
    """Return how many processes compile at once."""
    cores = len(os.sched_getaffinity(0))
    return max(min(_AT_LEAST, cores), min(_MOST_PROCESSES, cores // _CORES_A_PROCESS))


class Compilation(Future[Any]):
    """One compilation. Where its result is needed before it has run, it runs at once."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.work = work
        self._running = threading.Lock()

    def result(self, timeout: float | None = None) -> Any:
        self.run()
        return super().result(timeout)

    def run(self) -> None:
        """Compile here, unless that has been done."""
        with self._running:
            if self.done():
                return
            try:
                self.set_result(self.work())
            except BaseException as error:  # noqa: BLE001  compilers raise anything, as in an executor's thread
                self.set_exception(error)


class Compilations(Executor):
    """Collect compilations for `triton.AsyncCompileMode`, and run them all at its end."""

    def __init__(self) -> None:
        self._all: list[Compilation] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        self._all.append(Compilation(lambda: work(*args, **options)))
        return self._all[-1]

    def run(self, most: int, wait_s: float = 60.0) -> None:
        """Run what was collected in up to `most` processes, this one among them. When it has nothing left to do, the
        others end within `wait_s` seconds or are killed."""
        waiting = [one for one in self._all if not one.done()]
        with ExitStack() as stack:
            workers: list[_Worker] = []
            numbers: Iterator[int] = iter(range(len(waiting)))
            if min(most, len(waiting)) > 1:
                shared = _shared_numbers(stack, len(waiting))
                numbers = _taken(shared)
                with suppress(OSError):  # no more processes or files: those that are there do the work
                    for _ in range(min(most, len(waiting)) - 1):
                        workers.append(_start(stack, waiting, shared))
            for number in numbers:
                waiting[number].run()
            end = time.monotonic() + wait_s
            for worker in workers:
                for number, *words in worker.failures(end):
                    waiting[number].set_exception(WorkerFailed(*words))
        for one in waiting:
            one.run()


@dataclass(frozen=True, slots=True)
class _Worker:
    """A forked process, and the file in which it tells its failures."""

    pid: int
    pidfd: int
    told: IO[bytes]

    def failures(self, end: float) -> list[Any]:
        """Wait for the worker's end, kill it at time `end`, and return [number, said, compile_error] of what failed."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # the Candidate's code may have waited for it
            os.waitpid(self.pid, 0)
        self.told.seek(0)
        found = []
        with suppress(ValueError):  # it was killed while it wrote
            found = [json.loads(line) for line in self.told]
        return found


def _shared_numbers(stack: ExitStack, count: int) -> int:
    """Return a descriptor from which several processes read the numbers below `count`, each number once."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    stack.callback(os.close, reading)
    with os.fdopen(writing, "wb") as pipe:
        pipe.writelines(number.to_bytes(_NUMBER_BYTES, "little") for number in range(min(count, _MOST_SHARED)))
    return reading


def _taken(shared: int) -> Iterator[int]:
    while number := os.read(shared, _NUMBER_BYTES):
        yield int.from_bytes(number, "little")


def _start(stack: ExitStack, waiting: list[Compilation], shared: int) -> _Worker:
    """Fork a worker."""
    told = stack.enter_context(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115  the stack closes it
    flush_output()  # or the worker would print it once more
    parent = os.getpid()
    with warnings.catch_warnings():  # threads that are lost in the worker are a Candidate's own
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _work(waiting, shared, told, parent)
    pidfd = os.pidfd_open(pid)
    stack.callback(os.close, pidfd)
    return _Worker(pid, pidfd, told)


def _work(waiting: list[Compilation], shared: int, told: IO[bytes], parent: int) -> NoReturn:
    """Compile in a worker until nothing is left, then end without any of the parent's clean-up."""
    try:
        confine.die_with_parent()
        if os.getppid() == parent:  # else it ended before the line above
            for number in _taken(shared):
                try:
                    waiting[number].work()
                except BaseException as error:  # noqa: BLE001  compilers raise anything
                    told.write(json.dumps([number, said(error), compile_error(error)]).encode() + b"\n")
            flush_output()
    finally:
        os._exit(0)
