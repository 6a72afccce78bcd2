"""Recognise copies of vendor libraries by their code, under any file name.

The judge compares a child's mapped code with the vendor libraries on its own disk. File names are not trusted.
"""

from __future__ import annotations

import itertools
import mmap
import os
import re
import struct
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy

from evaluator.cage.memory import read_process_memory
from evaluator.sandbox.process import Place

_PAGE = 4096
_PIECE_BYTES = 32  # that two programs hardly share by chance
_MOST_PIECES, _SEARCHED_PIECES = 64, 4
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
    known = _code_by_path()
    found = (find_original(pid, low, high, offset) for low, high, offset, path in ranges if path not in known)
    return sorted({path for path in found if path is not None})


def find_hidden(ranges: Iterable[tuple[int, int, int, str]]) -> list[str]:
    """Return the vendor libraries whose code a process has made impossible to run.

    `ranges` holds (low, high, offset, path) of each mapping that is not executable. Segments may share a page.
    """
    code = _code_by_path()
    return sorted(
        {
            path
            for low, high, offset, path in ranges
            for one in code.get(path, ())
            if min(offset + high - low, one.offset + one.mapped) - max(offset, one.offset) > 2 * _PAGE
        }
    )


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


def find_pieces(places: Mapping[Place, int]) -> dict[Place, str]:
    """Return the vendor library of pieces of code, the commonest ones, wherever these lie in memory by now.

    Whole pages are found in any library. Code that was moved by less is looked for in some pieces only, since that
    reads every library from end to end.
    """
    whole = [place for place in sorted(places, key=lambda place: -places[place]) if len(place.code) >= _PIECE_BYTES]
    found: dict[Place, str] = {}
    for path, segments in _code_by_path().items():
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            for code in segments:
                end = min(len(data), code.offset + code.mapped)
                for rank, place in enumerate(whole[:_MOST_PIECES]):
                    if place not in found and (
                        _lies_at(data, code.offset, end, place)
                        or (rank < _SEARCHED_PIECES and data.find(place.code, code.offset, end) >= 0)
                    ):
                        found[place] = path
    return found


def _lies_at(data: mmap.mmap, start: int, end: int, place: Place) -> bool:
    """Return whether a page of a file has that code where its page in memory has it."""
    first = start + place.address % _PAGE
    count = max(0, end - len(place.code) - first) // _PAGE + 1
    if first + len(place.code) > end:
        return False
    words = numpy.ndarray((count,), "<u8", data, first, (_PAGE,))
    same = numpy.flatnonzero(words == int.from_bytes(place.code[:8], "little")).tolist()
    del words
    return any(data[at : at + len(place.code)] == place.code for at in (first + _PAGE * page for page in same))


@cache
def code_segments() -> tuple[Code, ...]:
    """Return the executable segments of every vendor library that is installed here."""
    packages = Path(sysconfig.get_paths()["purelib"]).resolve()  # as the kernel names what a process has mapped
    found = [path for pattern in _PATTERNS for path in packages.glob(pattern)]
    # One walk: a glob for each name takes ten times as long, in the first verdict of every judge.
    for folder, _, names in os.walk(_SYSTEM):
        found += [Path(folder, name) for name in names if _SYSTEM_NAMES.fullmatch(name)]
    return tuple(code for path in sorted(set(found)) if path.is_file() for code in _segments(path))


@cache
def _code_by_path() -> Mapping[str, Sequence[Code]]:
    by_path = itertools.groupby(code_segments(), key=lambda code: code.path)
    return {path: tuple(segments) for path, segments in by_path}


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
