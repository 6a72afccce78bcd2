"""Stopping every thread of a child at once, and knowing that it is stopped.

A child is everything below the first process of its pid namespace, its supervisor (ours, which is left running).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_TOLERATED_NS = 50_000  # of all threads together


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was stopped: its processes, and per thread the nanoseconds that it has run in its life."""

    pids: tuple[int, ...]
    ran_ns: Mapping[tuple[int, str], int]

    def has_run(self, root: int) -> bool:
        """Whether anything below `root` has run since: a stop can be undone from inside (by a timer's SIGCONT)."""
        now = _run_times(_threads_below(root))
        if now.keys() != self.ran_ns.keys():
            return True  # nobody is born or ends while all are stopped
        return sum(ns - self.ran_ns[thread] for thread, ns in now.items()) > _TOLERATED_NS


def freeze(root: int, *, timeout_s: float = 8.0) -> Frozen:
    """Stop everything below `root`; returns what was stopped once all threads are. Raises CannotFreeze.

    A process that forked just before it was stopped shows in the next look. Done are two looks in a row that find
    everybody known and stopped: since the first of them there was nobody left to fork. Who was continued meanwhile is
    stopped again.
    """
    deadline = time.monotonic() + timeout_s
    known: set[int] = set()
    quiet = False
    while True:
        threads = _threads_below(root)
        current = {pid for pid, _ in threads}
        awake = {pid for pid, thread in threads if not _is_stopped(pid, thread)}
        for pid in (current - known) | awake:
            _signal(pid, signal.SIGSTOP)
        stopped = not (current - known) and not awake
        known |= current
        if quiet and stopped:
            return Frozen(tuple(sorted(current)), _run_times(threads))
        quiet = stopped
        if not stopped:
            os.sched_yield()  # they may need this very core to stop on
        if time.monotonic() > deadline:
            raise CannotFreeze(f"processes below {root} did not stop within {timeout_s:g} s")


class CannotFreeze(Exception):
    """Something below a child's root does not stop."""


def program_counters(root: int) -> dict[tuple[int, str], int]:
    """Where in their code the threads below `root`, which are stopped, are, by process and thread: those that wait in
    the kernel left out."""
    found = {}
    for pid, thread in _threads_below(root):
        fields = _read(f"/proc/{pid}/task/{thread}/syscall").split()
        if len(fields) == 3 and fields[0] == b"-1":  # in no system call: stack pointer and program counter
            found[pid, thread] = int(fields[2], 16)
    return found


def run_and_queue_ns(pid: int) -> tuple[int, int]:
    """How long the first thread of a process has run in its life, and how long it has waited for a core; zeros where
    the kernel does not say."""
    fields = _read(f"/proc/{pid}/task/{pid}/schedstat").split()
    return (int(fields[0]), int(fields[1])) if len(fields) > 1 else (0, 0)


def total_queue_ns(root: int) -> int:
    """The same of everything below `root`, as far as it still lives."""
    fields = (_read(f"/proc/{pid}/task/{thread}/schedstat").split() for pid, thread in _threads_below(root))
    return sum(int(numbers[1]) for numbers in fields if len(numbers) > 1)


def _run_times(threads: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    times = {}
    for pid, thread in threads:
        # The kernel answers this only when the thread has left its core, and only then its time is written down.
        _read(f"/proc/{pid}/task/{thread}/syscall")
        fields = _read(f"/proc/{pid}/task/{thread}/schedstat").split()
        if not _is_ending(pid, thread):
            times[pid, thread] = int(fields[0]) if fields else 0
    return times


def thaw(pids: Iterable[int]) -> None:
    """Let processes that `freeze` stopped run again."""
    for pid in pids:
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants(root: int) -> list[int]:
    """Every process below `root`, whichever of its threads started it; `root` is not among them."""
    first = [pid for thread in _threads(root) for pid in _children(root, thread)]
    return sorted({*first, *(pid for one in first for pid in descendants(one))})


def _threads_below(root: int) -> list[tuple[int, str]]:
    """Every (process, thread) below `root`, which is a supervisor: it has one thread."""
    found: list[tuple[int, str]] = []
    frontier = _children(root, str(root))
    while frontier:
        pid = frontier.pop()
        for thread in _threads(pid):
            found.append((pid, thread))
            frontier += _children(pid, thread)
    return found


def _children(pid: int, thread: str) -> list[int]:
    return [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _threads(pid: int) -> list[str]:
    """The threads of a process, none when it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  the stop of the clock waits for this; Path costs more
    except OSError:
        return []


def _is_stopped(pid: int, thread: str) -> bool:
    stat = _read(f"/proc/{pid}/task/{thread}/stat")
    # The name in parentheses may hold anything, so the state is sought after the last parenthesis.
    state = stat.rfind(b")") + 2
    return not stat or stat[state : state + 1] in (b"T", b"t", b"Z", b"X", b"x")


def _is_ending(pid: int, thread: str) -> bool:
    stat = _read(f"/proc/{pid}/task/{thread}/stat")
    state = stat.rfind(b")") + 2
    return not stat or stat[state : state + 1] in (b"Z", b"X", b"x")


def _read(path: str) -> bytes:
    """A small file of /proc, empty when the process is gone. Not by `open`, which takes twice as long."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        out = b""
        while chunk := os.read(fd, 65536):
            out += chunk
            if len(chunk) < 2048:
                break  # the kernel fills a page where it has more to say
        return out
    except OSError:
        return b""
    finally:
        os.close(fd)


def usage(root: int) -> tuple[int, int]:
    """Threads below `root`, and the bytes of memory they hold: anonymous and shared pages, not libraries' files."""
    threads = _threads_below(root)
    resident_kib = 0
    for pid in {pid for pid, _ in threads}:
        lines = _read(f"/proc/{pid}/status").split(b"\n")
        resident_kib += sum(int(line.split()[1]) for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))
    return len(threads), resident_kib * 1024
