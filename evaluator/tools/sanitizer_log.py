"""Parse the logs of compute-sanitizer. Method: the formats shown in NVIDIA's Compute Sanitizer user guide.

A record begins with "========= " and a text; its further lines are indented. Read are memcheck's records about accesses
and traps inside a kernel (never those about API calls) and racecheck's records about races.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_MARK = "========="
_MOST_RECORDS, _MOST_LINES = 200, 40
_INVALID = re.compile(r"Invalid __(?P<space>\w+)__ (?P<access>\w+) of size (?P<bytes>[\d,]+) bytes?")
_TRAP = re.compile(r"(?i)(?:warp |lane |cluster )?(?:illegal|misaligned|out-of-range|invalid) [\w -]{3,60}$")
_RACE = re.compile(
    r"(?i)(?P<severity>error|warning|info)\w*: Race reported between (?P<access>\w+) access at (?P<at>.+)"
)
_OTHER = re.compile(r"and (?P<access>\w+) access at (?P<at>.+?)(?: \[(?P<hazards>[\d,]+) hazards?\])?$")
_PLACE = re.compile(r"(?P<name>.+?)\+0x[0-9a-fA-F]+(?: in (?P<file>.+):(?P<line>\d+))?$")
_OLD_PLACE = re.compile(r"0x[0-9a-fA-F]+ in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<name>.+)$")
_THREAD = re.compile(r"by thread (?P<thread>\([\d,]+\)) in block (?P<block>\([\d,]+\))")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: \d+ errors?|RACECHECK SUMMARY: \d+ hazards? displayed)")
_UNSUPPORTED = re.compile(r"(?i)device not supported|not supported on this|unsupported (?:device|driver|gpu)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An instruction: its function (demangled, as printed), and its source line if known."""

    name: str
    file: str = ""
    line: int | None = None

    @property
    def base(self) -> str:
        """Return the function's bare name: no return type, namespaces, template arguments or parameters."""
        return base_name(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finding.

    `what` is its first line, `details` are its further lines. `places` are its instructions: first the access itself,
    then the functions that it was inlined into, or the access that it races with. `error` is False for a warning.
    """

    what: str
    places: tuple[Place, ...]
    details: tuple[str, ...] = ()
    thread: str = ""
    block: str = ""
    error: bool = True


def base_name(name: str) -> str:
    """Return "scale" for "void ns::scale<float>(float *, int)"; return other texts unchanged."""
    bare = re.sub(r"\((?:anonymous namespace|bool|int)\)", "", name)
    depth, kept = 0, []
    for letter in bare:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter == "(" and depth == 0:
            break
        elif depth == 0:
            kept.append(letter)
    words = "".join(kept).replace("::", " ").split()
    return words[-1] if words else name


def complete(log: str) -> bool:
    """Return True if the log has the tool's summary. Without it, a log without findings proves nothing."""
    return bool(_SUMMARY.search(log))


def unsupported(text: str) -> str:
    """Return the line in which a tool says that it does not work on this device, or ""."""
    return next((_bare(line)[:200] for line in text.splitlines() if _UNSUPPORTED.search(line)), "")


def memory_errors(log: str) -> list[Record]:
    """Return memcheck's records of accesses and traps inside kernels."""
    found = []
    for what, details in _records(log):
        if not (_INVALID.match(what) or _TRAP.match(what)):
            continue
        frames = [line.removeprefix("Device Frame:") for line in details if line.startswith(("at ", "Device Frame:"))]
        places = [place for frame in frames if (place := _place(frame.strip()))]
        thread = next((m for line in details if (m := _THREAD.search(line))), None)
        told = tuple(line for line in details if line.startswith(("Address", "Access", "and is")))
        found.append(
            Record(
                what=what,
                places=tuple(places),
                details=told,
                thread=thread["thread"] if thread else "",
                block=thread["block"] if thread else "",
            )
        )
    return found


def races(log: str) -> list[Record]:
    """Return racecheck's analysis records: shared memory that one thread writes while another uses it."""
    found = []
    for what, details in _records(log):
        head = _RACE.match(what)
        if head is None:
            continue
        others = [m for line in details if (m := _OTHER.match(line))]
        places = [_place(head["at"]), *(_place(other["at"]) for other in others)]
        told = [f"{head['access']} access at {head['at']}"]
        told += [
            f"{m['access']} access at {m['at']}" + (f", {m['hazards']} hazards" if m["hazards"] else "") for m in others
        ]
        found.append(
            Record(
                what=f"race between {' and '.join(_accesses(head, others))} accesses of shared memory",
                places=tuple(place for place in places if place),
                details=tuple(told[:6]),
                error=head["severity"].lower() == "error",
            )
        )
    return found


def _accesses(head: re.Match[str], others: list[re.Match[str]]) -> list[str]:
    return list(dict.fromkeys(m["access"].lower() for m in (head, *others)))


def _place(text: str) -> Place | None:
    text = text.removeprefix("at ").strip()
    found = _PLACE.match(text) or _OLD_PLACE.match(text)
    if found is None:
        return None
    file = PurePosixPath(found["file"]).name if found["file"] else ""
    return Place(name=found["name"].strip(), file=file, line=int(found["line"]) if found["line"] else None)


def _records(log: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the first line and the further lines of each record, without marks and indentation."""
    head, count = "", 0
    details: list[str] = []
    for line in log.splitlines():
        if not line.startswith(_MARK):
            continue
        rest = line[len(_MARK) :]
        text = _bare(line)
        if rest.startswith("     ") and text:
            if len(details) < _MOST_LINES:
                details.append(text)
            continue
        if head:
            yield head, details
            count += 1
            if count == _MOST_RECORDS:
                return
        head, details = text, []
    if head:
        yield head, details


def _bare(line: str) -> str:
    return line.removeprefix(_MARK).strip()[:1000]
