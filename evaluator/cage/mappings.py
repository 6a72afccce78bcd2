"""Ask the kernel where a process has mapped a memory file."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

Span = tuple[int, int]
"""An address and a number of bytes."""

# PROCMAP_QUERY of linux/fs.h, since Linux 6.11. A child has hundreds of mappings: to write and read them all as text
# takes the most of a millisecond, and a round asks for each of its calls.
_QUERY = 0xC068_6611
_STRUCT = struct.Struct("=9Q4I2Q")
_START, _END, _INODE, _MAJOR, _MINOR = 3, 4, 8, 9, 10
_COVERING_OR_NEXT, _OF_FILES = 0x10, 0x20
_MOST_QUERIES = 64  # of a span; a child can make as many mappings as it likes
_ADDRESSES = 1 << 63


def meet_file(pid: int, fd: int, spans: Sequence[Span]) -> list[bool]:
    """Return for each span of a process whether any byte of it lies in a mapping of this memory file.

    Raise OSError where the process's mappings cannot be read.
    """
    file = os.fstat(fd)
    try:
        return _asked(pid, file, spans)
    except _NotTold:
        return in_text(pid, fd, spans)


class _NotTold(Exception):
    """The kernel answers no queries, or there would be too many of them."""


def _asked(pid: int, file: os.stat_result, spans: Iterable[Span]) -> list[bool]:
    maps = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return [_meets(maps, file, start, start + max(1, size)) for start, size in spans]
    finally:
        os.close(maps)


def _meets(maps: int, file: os.stat_result, start: int, end: int) -> bool:
    wanted, start = (file.st_ino, os.major(file.st_dev), os.minor(file.st_dev)), max(0, start)
    for _ in range(_MOST_QUERIES):
        if start >= min(end, _ADDRESSES):
            return False
        told = _next(maps, start)
        if told is None or told[_START] >= end:
            return False
        if (told[_INODE], told[_MAJOR], told[_MINOR]) == wanted:
            return True
        start = told[_END]
    raise _NotTold


def _next(maps: int, address: int) -> tuple[int, ...] | None:
    """Return the mapping of a file that covers an address or follows it, None if there is none."""
    asked = bytearray(_STRUCT.pack(_STRUCT.size, _COVERING_OR_NEXT | _OF_FILES, address, *[0] * 12))
    try:
        fcntl.ioctl(maps, _QUERY, asked)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise _NotTold from error
    return _STRUCT.unpack(asked)


def in_text(pid: int, fd: int, spans: Iterable[Span]) -> list[bool]:
    """Return the same by the text of /proc, as older kernels need. Raise OSError."""
    wanted, name = str(os.fstat(fd).st_ino), Path(f"/proc/self/fd/{fd}").readlink().name
    ranges = []
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        if name not in line:  # hundreds are libraries
            continue
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[4] == wanted and fields[5] == f"/{name}":
            low, _, high = fields[0].partition("-")
            ranges.append((int(low, 16), int(high, 16)))
    return [any(start < high and low < start + max(1, size) for low, high in ranges) for start, size in spans]
