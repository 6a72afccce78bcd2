"""Recognise copies of vendor libraries by their code, under any file name.

The judge compares a child's mapped code with the vendor libraries on its own disk. File names are not trusted.
"""

from __future__ import annotations

import os
import re
import struct
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluator.cage.memory import read_process_memory

_PAGE = 4096
_LOOKS = 5  # pages to compare
_LEAST_BYTES = 64 << 10  # a vendor library's code is larger
_EXECUTABLE = 1  # PF_X
_PATTERNS = ("*.libs/*.so*", "torch/lib/*.so*", "mkl/**/*.so*")
_SYSTEM = "/usr/lib"
_SYSTEM_NAMES = re.compile(r"lib(.*blas|mkl|dnnl|lapack).*\.so.*")


@dataclass(frozen=True, slots=True)
class Code:
    """One executable segment of a library's file. `mapped` is its size in memory, in whole pages."""

    path: str
    offset: int
    mapped: int


def find_original(pid: int, low: int, high: int, offset: int) -> str | None:
    """Return the vendor library from which a process has mapped code from `low` to `high`, or None.

    The mapping starts at `offset` in the file.
    """
    if high - low < _LEAST_BYTES:
        return None
    same_size = (code for code in code_segments() if (code.offset, code.mapped) == (offset, high - low))
    return next((code.path for code in same_size if _is_same(pid, low, code)), None)


def find_copies(pid: int, ranges: Iterable[tuple[int, int, int, str]]) -> list[str]:
    """Return the vendor libraries that a process has mapped as copies.

    `ranges` holds (low, high, offset, path) of each executable mapping. The originals themselves do not count.
    """
    known = {code.path for code in code_segments()}
    found = (find_original(pid, low, high, offset) for low, high, offset, path in ranges if path not in known)
    return sorted({path for path in found if path is not None})


def _is_same(pid: int, low: int, code: Code) -> bool:
    step = code.mapped // _LOOKS // _PAGE * _PAGE
    page = bytearray(_PAGE)
    try:
        with Path(code.path).open("rb") as file:
            for look in range(_LOOKS - 1):
                file.seek(code.offset + look * step)
                read_process_memory(pid, low + look * step, memoryview(page))
                if bytes(page) != file.read(_PAGE):
                    return False
    except OSError:
        return False
    return True


@cache
def code_segments() -> tuple[Code, ...]:
    """Return the executable segments of every vendor library that is installed here."""
    packages = Path(sysconfig.get_paths()["purelib"])
    found = [path for pattern in _PATTERNS for path in packages.glob(pattern)]
    # One walk: a glob for each name takes ten times as long, in the first verdict of every judge.
    for folder, _, names in os.walk(_SYSTEM):
        found += [Path(folder, name) for name in names if _SYSTEM_NAMES.fullmatch(name)]
    return tuple(code for path in sorted(set(found)) if path.is_file() for code in _segments(path))


def _segments(path: Path) -> Iterator[Code]:
    with path.open("rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            return
        (start,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(start)
        table = file.read(size * count)
    for index in range(len(table) // size if size >= 56 else 0):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", table, index * size)
        if kind == 1 and flags & _EXECUTABLE:
            begin = offset // _PAGE * _PAGE
            yield Code(str(path), begin, -(-(offset + length - begin) // _PAGE) * _PAGE)
