"""Processor seconds of this process and everything below it, for the record of each test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = "/proc"


def used_s() -> float:
    """Return the processor seconds of this process, its descendants, and the descendants that ended."""
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
