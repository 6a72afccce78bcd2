"""Processor seconds of this process and everything that it starts, for the record of each test."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import time
from collections.abc import Callable, Iterator

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NS_PER_S = 1e9
_PROC = "/proc"
# perf_event_open(2). The kernel adds what children used as they end, however they end.
_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
_CLOEXEC, _THIS_PROCESS, _ANY_CORE, _NO_GROUP = 8, 0, -1, -1
_SOFTWARE, _TASK_CLOCK = 1, 1
_INHERIT, _EXCLUDE_KERNEL = 1 << 1, 1 << 5  # without the second, the kernel refuses users; a clock counts all the same
_ATTRIBUTES = struct.Struct("=IIQQQQQ64x")  # type, size, config, and period, sample, read format, flags


def open_clock() -> Callable[[], float]:
    """Return a function that says how many processor seconds this process and its children have used.

    It counts the children that begin after this call. Where the kernel offers no such clock, children that nobody
    waited for are missing once they ended: whatever dies with its pid namespace, as most of what a cage holds.
    """
    file = _open_event()
    if file is None:
        return seen_s
    before_s = time.process_time() - _read_s(file)
    return lambda: before_s + _read_s(file)


def _open_event() -> int | None:
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None:
        return None
    what = _ATTRIBUTES.pack(_SOFTWARE, _ATTRIBUTES.size, _TASK_CLOCK, 0, 0, 0, _INHERIT | _EXCLUDE_KERNEL)
    file: int = ctypes.CDLL(None).syscall(
        number, ctypes.create_string_buffer(what, len(what)), _THIS_PROCESS, _ANY_CORE, _NO_GROUP, _CLOEXEC
    )
    return file if file >= 0 else None


def _read_s(file: int) -> float:
    return float(struct.unpack("=Q", os.read(file, 8))[0]) / _NS_PER_S


def seen_s() -> float:
    """Return the processor seconds of this process, its descendants, and the descendants that were waited for."""
    return sum(_ticks(pid) for pid in _family(os.getpid())) / _TICKS_PER_S


def _ticks(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15]))  # utime, stime, and both of the children that were waited for
    return 0


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{_PROC}/{pid}/task"):  # noqa: PTH208
            for child in _children(pid, thread):
                yield from _family(child)


def _children(pid: int, thread: str) -> list[int]:
    with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/task/{thread}/children", "rb") as file:
        return [int(one) for one in file.read().split()]
    return []
