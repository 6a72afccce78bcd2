"""Find the file and function of an address in a child, from the kernel's mappings and the files' own symbol tables.

A child cannot forge either: the judge reads the mappings from /proc and the files from its own disk.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy

from evaluator.cage import bwrap
from evaluator.cage.memory import read_process_pieces
from evaluator.sandbox import vendor_code
from evaluator.sandbox.process import Place

_FUNCTION = 2  # STT_FUNC
_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_FIELDS = {"name": "<u4", "info": "u1", "other": "u1", "section": "<u2", "value": "<u8", "size": "<u8"}
_SYMBOL = numpy.dtype(list(_FIELDS.items()))
# Vendor libraries by their file or function: BLAS and LAPACK (MKL, OpenBLAS), oneDNN, fbgemm, XNNPACK.
_LIBRARY = re.compile(
    r"openblas|mkl_(blas|lapack|dft|jit|sparse|xblas)|[sdcz]gemm|[sdcz]gemv|cblas_|dnnl|mkldnn|fbgemm|xnn_|lapack|libblas",
    re.IGNORECASE,
)

_UNKNOWN, _GENERATED, _OWN = "unknown", "generated code", "the candidate's own library"
_FOREIGN = (_UNKNOWN, _GENERATED, _OWN)  # places whose code may have been taken from anywhere
_HIDDEN = "hidden code of"
_INTERPRETER = re.compile(r"(lib)?python3(\.\d+)?")
_LARGEST = "libtorch_cpu.so"
_COMPARED = 16  # bytes of code
_COPIED = re.compile(rf"{_LIBRARY.pattern}|libtorch", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Range:
    """One mapped range of a process. File offsets start at `offset`."""

    low: int
    high: int
    offset: int
    path: str


def executable_ranges(pid: int) -> list[Range]:
    """Return every executable mapping of a process; none if it is gone."""
    return [mapped for mapped, executable in _ranges(pid) if executable]


def _ranges(pid: int) -> list[tuple[Range, bool]]:
    """Return every mapping of a process, and whether it is executable."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        fields = line.split(maxsplit=5)
        low, _, high = fields[0].partition("-")
        path = fields[5] if len(fields) == 6 else ""
        found.append((Range(int(low, 16), int(high, 16), int(fields[2], 16), path), "x" in fields[1]))
    return found


def count_places(pid: int, places: Iterable[tuple[int, Place]]) -> tuple[dict[str, int], Counter[Place]]:
    """Count samples by place: "libtorch_cpu.so: mkl_blas_sgemm", "the candidate's own library". Return also those that
    are in none of the machine's files by now: their code tells more than the mappings, which may have changed since.

    Each sample comes with its process; a helper process has mappings of its own. A copy of a vendor library that any
    of the processes has mapped counts as seen twice, wherever the samples are. So does a vendor library's code that is
    mapped and cannot run: a Candidate has hidden it, and changing its mapping takes longer than many a call of it.
    """
    found = list(places)
    mapped = {one: _ranges(one) for one in {pid, *(where for where, _ in found)}}
    ranges = {one: [r for r, executable in every if executable] for one, every in mapped.items()}
    counts: dict[str, int] = {}
    for one, every in mapped.items():
        own = ((r.low, r.high, r.offset, r.path) for r in ranges[one] if _is_own(one, r.path))
        counts |= {
            f"a copy of {Path(path).name}": 2 for path in vendor_code.find_copies(one, own) if _COPIED.search(path)
        }
        hidden = vendor_code.find_hidden((r.low, r.high, r.offset, r.path) for r, runs in every if not runs)
        counts |= {f"{_HIDDEN} {Path(path).name}": 2 for path in hidden}
    foreign: Counter[Place] = Counter()
    for where, place in found:
        name = _place(where, ranges[where], place.address)
        counts[name] = counts.get(name, 0) + 1
        if name in _FOREIGN:
            foreign[place] += 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1])), foreign


def count_in_interpreter(pid: int, addresses: Sequence[int]) -> int:
    """Count the addresses of a process in Python's own code, if that code is the same as in its file."""
    ranges = [r for r in executable_ranges(pid) if _INTERPRETER.match(Path(r.path).name) and not _is_own(pid, r.path)]
    found = [(r, address) for address in addresses for r in ranges if r.low <= address < r.high]
    return sum(_is_as_in_file(pid, r, address) for r, address in found)


def _is_as_in_file(pid: int, mapped: Range, address: int) -> bool:
    width = min(_COMPARED, mapped.high - address)
    try:
        with Path(bwrap.outside(mapped.path)).open("rb") as file:
            file.seek(address - mapped.low + mapped.offset)
            return file.read(width) == read_process_pieces(pid, [address], width)
    except OSError:
        return False


def prepare() -> None:
    """Find the vendor libraries of this machine and read torch's functions: the first samples would wait for both."""
    for path in {code.path for code in vendor_code.code_segments() if Path(code.path).name == _LARGEST}:
        _table(path)


def copied_places(foreign: Mapping[Place, int]) -> dict[str, int]:
    """Count samples of code that is a vendor library's, word by word, wherever it lies: "a copy of libopenblas.so"."""
    counts: dict[str, int] = {}
    for place, path in vendor_code.find_pieces(foreign).items():
        name = f"a copy of {Path(path).name}"
        if _COPIED.search(name):
            counts[name] = counts.get(name, 0) + foreign[place]
    return counts


def is_library(place: str) -> bool:
    """Return true for a place in a vendor library. A copy of libtorch counts: it serves no other purpose."""
    return _LIBRARY.search(place) is not None or place.startswith(("a copy of libtorch", _HIDDEN))


def _place(pid: int, ranges: Iterable[Range], address: int) -> str:
    found = next((r for r in ranges if r.low <= address < r.high), None)
    if found is None:
        return _UNKNOWN
    name = Path(found.path).name
    if not found.path or found.path.startswith("[anon"):
        return _GENERATED
    if _is_own(pid, found.path):
        vendor = vendor_code.find_original(pid, found.low, found.high, found.offset)
        if vendor is None:
            return _OWN
        symbol = _symbol(vendor, address - found.low + found.offset)
        return f"a copy of {Path(vendor).name}: {symbol}" if symbol else f"a copy of {Path(vendor).name}"
    symbol = _symbol(found.path, address - found.low + found.offset)
    return f"{name}: {symbol}" if symbol else name


def _is_own(pid: int, path: str) -> bool:
    """Return true for a mapped file in a place where only a Candidate can put one."""
    if path.endswith("(deleted)"):
        return True
    return path.startswith(("/tmp/", "/job/", "/dev/shm/")) and not _is_our_library(pid, path)


def _is_our_library(pid: int, path: str) -> bool:
    """Return true for a library of the judge's below /tmp.

    Only a child without mounts of its own sees it there. In a cage a Candidate could make a file of that name, so the
    files are compared.
    """
    try:
        return _is_shown(path) and Path(f"/proc/{pid}/root{path}").samefile(path)
    except OSError:
        return False


@lru_cache(maxsize=256)
def _is_shown(path: str) -> bool:
    """Return `bwrap.shown_below_own_mounts`, which looks for this Python's folders each time: they stay as they are."""
    return bwrap.shown_below_own_mounts(path)


def _symbol(path: str, offset: int) -> str | None:
    table = _table(path)
    return None if table is None else table.at(offset)


class _Table:
    """The functions of one ELF file, by their offset in it."""

    def __init__(self, path: str) -> None:
        self._path = path
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            self._read(data)

    def _read(self, data: mmap.mmap) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self._loads = _segments(data)
        sections = _sections(data)
        kind, _, start, size, link = max((s for s in sections if s[0] in _TABLES), key=lambda s: (s[0] == 2, s[3]))
        del kind
        self._strings = sections[link][2]
        symbols = numpy.frombuffer(data[start : start + size], dtype=_SYMBOL)
        symbols = symbols[(symbols["info"] & 15 == _FUNCTION) & (symbols["value"] != 0)]
        order = numpy.argsort(symbols["value"], kind="stable")
        self._values, self._names = symbols["value"][order], symbols["name"][order]

    def at(self, offset: int) -> str | None:
        address = next((a + offset - o for o, a, length in self._loads if o <= offset < o + length), None)
        if address is None:
            return None
        index = int(numpy.searchsorted(self._values, address, side="right")) - 1
        if index < 0:
            return None
        with Path(self._path).open("rb") as file:
            file.seek(self._strings + int(self._names[index]))
            return file.read(120).partition(b"\0")[0].decode("ascii", "replace")


def _segments(data: mmap.mmap) -> list[tuple[int, int, int]]:
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + index * size)
        if kind == 1:
            found.append((offset, address, length))
    return found


def _sections(data: mmap.mmap) -> list[tuple[int, int, int, int, int]]:
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    found = []
    for index in range(count):
        _, kind, _, address, offset, length, link = struct.unpack_from("<IIQQQQI", data, start + index * size)
        found.append((kind, address, offset, length, link))
    return found


@lru_cache(maxsize=8)
def _table(path: str) -> _Table | None:
    try:
        return _Table(bwrap.outside(path))
    except (OSError, ValueError, struct.error, IndexError):
        return None


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the first 20 counts as shares of the total."""
    total = sum(counts.values())
    return {place: round(count / total, 3) for place, count in list(counts.items())[:20]} if total else {}
