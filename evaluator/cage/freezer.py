"""Stop every thread of a child at once, and prove that it is stopped.

A child is everything below the first process of its pid namespace: its supervisor, which is ours and keeps running.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluator.errors import CageError

_GONE = (FileNotFoundError, ProcessLookupError)
_TOLERATED_NS = 50_000  # of all threads together
_PROCESS_CLOCK = 2  # of the run time of another process, as clock_getcpuclockid(3) numbers it
_FEWEST_SCANS = 50  # before a child is given up: the judge may have been kept off its core
_BEFORE_PAUSING_S = 0.0002  # on a core of their own they stop sooner
# They may need this very core to stop. A yield does not give it to them on Linux 6.18, where they are of another
# session: for seconds it returns at once.
_PAUSE_S = 0.0001


@dataclass(frozen=True, slots=True)
class Frozen:
    """The stopped processes, and the run time of each thread so far in nanoseconds."""

    pids: tuple[int, ...]
    ran_ns: Mapping[tuple[int, str], int]

    def has_run(self, root: int) -> bool:
        """Return true if anything below `root` has run since the stop.

        A timer's SIGCONT can undo a stop from inside.
        """
        now = _run_times(_threads_below(root))
        if now.keys() != self.ran_ns.keys():
            return True  # no thread starts or ends while all are stopped
        return sum(ns - self.ran_ns[thread] for thread, ns in now.items()) > _TOLERATED_NS


def freeze(root: int, *, timeout_s: float = 8.0) -> Frozen:
    """Stop everything below `root`, and return the stopped processes once all threads are stopped. Raise CannotFreeze.

    A process that forked just before it was stopped shows up in the next scan. Two scans in a row must find only known,
    stopped processes: after the first of them nothing was left to fork. Processes that were continued meanwhile are
    stopped again. A thread needs its core to stop, and this one needs its own to see that: time in which others had
    these cores does not count, up to three times as much.
    """
    patient = time.monotonic() + _BEFORE_PAUSING_S
    deadline = patient + timeout_s
    queued_ns = total_queue_ns(root)
    known: set[int] = set()
    quiet, scans = False, 0
    while True:
        scans += 1
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
        if not stopped and time.monotonic() > patient:
            time.sleep(_PAUSE_S)
        late_s = time.monotonic() - deadline
        if late_s > 0 and scans >= _FEWEST_SCANS and late_s > min(_waited_s(root, queued_ns), 3 * timeout_s):
            raise CannotFreeze(f"processes below {root} did not stop within {timeout_s:g} s")


def _waited_s(root: int, before_ns: int) -> float:
    return max(0, total_queue_ns(root) - before_ns) / 1e9


class CannotFreeze(Exception):
    """A process below a child's root does not stop."""


def program_counters(root: int) -> dict[tuple[int, str], int]:
    """Return the program counter of each stopped thread below `root`, by process and thread.

    Threads that wait in the kernel are left out.
    """
    found = {}
    for pid, thread in _threads_below(root):
        fields = _read_if_allowed(f"/proc/{pid}/task/{thread}/syscall").split()
        if len(fields) == 3 and fields[0] == b"-1":  # in no system call: stack pointer and program counter
            found[pid, thread] = int(fields[2], 16)
    return found


def run_and_queue_ns(pid: int, thread: int) -> tuple[int, int]:
    """Return the run time of a thread so far, and its time in the run queue.

    Both are 0 where the kernel does not tell.
    """
    return _schedstat(pid, thread)[:2]


def tells_run_times() -> bool:
    """Return whether this kernel tells how long a process has run."""
    return os.access("/proc/self/schedstat", os.R_OK)


def minor_faults(pid: int) -> int:
    """Return the page faults of a process so far that needed no disk. 0 where the kernel does not tell."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[7]) if len(fields) > 7 else 0


def total_ran_ns(root: int) -> int:
    """Return the total run time of all processes below `root`, with that of threads which have ended. Of a process that
    is not stopped it may be some milliseconds old. 0 where the kernel does not tell.
    """
    total = 0
    for pid in {pid for pid, _ in _threads_below(root)}:
        with contextlib.suppress(OSError):  # it has ended, or an old kernel does not know another process's clock
            total += time.clock_gettime_ns(~pid << 3 | _PROCESS_CLOCK)
    return total


def sees(root: int, pid: int) -> bool:
    """Return whether process `pid` is found below `root`: not where /proc hides processes or does not list children."""
    return any(pid == one for one, _ in _threads_below(root))


def total_queue_ns(root: int) -> int:
    """Return the total run-queue time of all living threads below `root`."""
    return sum(_schedstat(pid, thread)[1] for pid, thread in _threads_below(root))


def total_arrivals(root: int) -> int:
    """Return how often all living threads below `root` have got a core. The kernel counts as soon as they get it."""
    return sum(_schedstat(pid, thread)[2] for pid, thread in _threads_below(root))


def _schedstat(pid: int, thread: int | str) -> tuple[int, int, int]:
    """Return a thread's run time and time in the run queue in nanoseconds, and how often it got a core. 0 where the
    kernel does not tell."""
    fields = _read(f"/proc/{pid}/task/{thread}/schedstat").split()
    return (int(fields[0]), int(fields[1]), int(fields[2])) if len(fields) > 2 else (0, 0, 0)


def _run_times(threads: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    times = {}
    for pid, thread in threads:
        # The kernel answers this read once the thread has left its core; only then is its run time up to date.
        _read_if_allowed(f"/proc/{pid}/task/{thread}/syscall")
        ran_ns = _schedstat(pid, thread)[0]
        if not _is_ending(pid, thread):
            times[pid, thread] = ran_ns
    return times


def thaw(pids: Iterable[int]) -> None:
    """Let processes that `freeze` stopped run again."""
    for pid in pids:
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants(root: int) -> list[int]:
    """Return every process below `root`, whichever thread started it; `root` is not included."""
    first = [pid for thread in _threads(root) for pid in _children(root, thread)]
    return sorted({*first, *(pid for one in first for pid in descendants(one))})


def _threads_below(root: int) -> list[tuple[int, str]]:
    """Return every (process, thread) below `root`, a supervisor with a single thread."""
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
    """Return the threads of a process, none if it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  the clock runs during this; Path is slower
    except _GONE:
        return []
    except OSError as error:
        raise CageError(f"the judge cannot read /proc: {error}") from error


def _is_stopped(pid: int, thread: str) -> bool:
    stat = _read(f"/proc/{pid}/task/{thread}/stat")
    # The name in parentheses may hold anything, so the state follows the last parenthesis.
    state = stat.rfind(b")") + 2
    return not stat or stat[state : state + 1] in (b"T", b"t", b"Z", b"X", b"x")


def _is_ending(pid: int, thread: str) -> bool:
    stat = _read(f"/proc/{pid}/task/{thread}/stat")
    state = stat.rfind(b")") + 2
    return not stat or stat[state : state + 1] in (b"Z", b"X", b"x")


def _read(path: str, empty: tuple[type[OSError], ...] = _GONE) -> bytes:
    """Return a small file of /proc, empty if the process is gone. Raise CageError if it cannot be read for another
    reason (no descriptor is left, say): a process of which nothing is known must not count as stopped."""
    try:
        return _contents(path)
    except empty:
        return b""
    except OSError as error:
        raise CageError(f"the judge cannot read {path}: {error}") from error


def _read_if_allowed(path: str) -> bytes:
    """Return a small file of /proc, empty also if only who may trace the process may read this."""
    return _read(path, (*_GONE, PermissionError))


def _contents(path: str) -> bytes:
    """Read a file by its descriptor: `open` would take twice as long."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        out = b""
        while chunk := os.read(fd, 65536):
            out += chunk
            if len(chunk) < 2048:
                break  # the kernel fills a page while more follows
        return out
    finally:
        os.close(fd)


def usage(root: int) -> tuple[int, int]:
    """Return the number of threads below `root`, and the bytes that they hold in anonymous and shared pages.

    Pages of libraries' files do not count. Pages that forked processes share count for each of them: the bytes are an
    upper bound, which is cheap to read.
    """
    threads = _threads_below(root)
    fields = (b"RssAnon:", b"RssShmem:")
    return len(threads), sum(_bytes_in(f"/proc/{pid}/status", fields) for pid in {pid for pid, _ in threads})


def proportional_bytes(root: int) -> int:
    """Return the bytes of `usage` with each shared page divided among the processes that share it.

    It takes milliseconds a process. A process whose pages cannot be read counts with the upper bound.
    """
    fields = (b"Pss_Anon:", b"Pss_Shmem:")
    return sum(
        _bytes_in(f"/proc/{pid}/smaps_rollup", fields) or _bytes_in(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:"))
        for pid in {pid for pid, _ in _threads_below(root)}
    )


def _bytes_in(path: str, fields: tuple[bytes, ...]) -> int:
    lines = _read_if_allowed(path).split(b"\n")
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(fields))
