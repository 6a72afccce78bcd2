"""Values that all readers share: an imported problem, its text, and how a problem file tells its origin."""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.errors import BadUsage

ORIGIN = "# warpwright origin: "
"""The comment at the end of an imported file: JSON for the exporters, so that a kernel finds its way back."""
LIMIT_BYTES = 1 << 20
_RESERVED = ("name", "weight", "device", "held_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A problem file made from somebody else's form. `notes` say what differs from there."""

    name: str
    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that cannot be imported, with the reason and what to do."""

    name: str
    reason: str


class CannotImport(BadUsage):
    """One item is refused; in a folder the others are imported all the same."""


def problem_text(about: str, body: str, origin: Mapping[str, Any]) -> str:
    """Return a problem file: its docstring, the code, the comment with its origin. Raises CannotImport."""
    quoted = about.strip().replace("\\", "/").replace('"', "'")
    text = f'"""{quoted}"""\n\n{body.strip()}\n\n{origin_line(origin)}\n'
    if len(text.encode("utf-8", "replace")) > LIMIT_BYTES:
        raise CannotImport(f"the problem file would be larger than {LIMIT_BYTES >> 20} MiB: choose fewer workloads")
    return text


def origin_line(origin: Mapping[str, Any]) -> str:
    return ORIGIN + json.dumps(origin, ensure_ascii=True, separators=(",", ":"))


def workloads_setting(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the statement `WORKLOADS = [...]`, a line for each workload."""
    return "WORKLOADS = [\n" + "".join(f"    {dict(row)!r},\n" for row in rows) + "]\n"


def file_name(text: str) -> str:
    """Return a name that is good for a file and a module."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:80] or "problem"


def size_name(text: str, taken: Iterable[str] = ()) -> str:
    """Return a name that a size of a workload may have."""
    name = re.sub(r"\W", "_", text)
    if not name.isidentifier() or keyword.iskeyword(name) or name in (*_RESERVED, *taken):
        name = f"{name}_size" if name[:1].isalpha() else f"size_{name}"
    return name


def parse_python(text: str, where: str) -> ast.Module:
    """Raises CannotImport with the line."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise CannotImport(f"{where}, line {error.lineno}: {error.msg}; it is read as Python {_PYTHON}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise CannotImport(f"{where} cannot be read: {type(error).__name__}") from error


_PYTHON = "source, without being run"


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """Raises CannotImport for a file that is absent, too large or not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CannotImport(f"{path}: {error.strerror or error}") from error
    if len(data) > limit:
        raise CannotImport(f"{path} is larger than {limit >> 20} MiB. Is it the right file?")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise CannotImport(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def read_json(text: str, where: str) -> dict[str, Any]:
    """Return a JSON object. Raises CannotImport."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotImport(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CannotImport(f"{where} is not a JSON object")
    return value


def chosen(names: Sequence[str], most: int) -> list[int]:
    """Return the places of at most `most` items, spread evenly, the first and the last among them."""
    if len(names) <= most:
        return list(range(len(names)))
    if most == 1:
        return [len(names) - 1]
    return sorted({round(place * (len(names) - 1) / (most - 1)) for place in range(most)})


def commit_of(path: Path) -> str | None:
    """Return the commit that a git checkout around `path` stands at, as its files say; None outside of one."""
    for folder in (path.absolute(), *path.absolute().parents):
        git = folder / ".git"
        if git.is_file():  # a worktree: its folder is named in the file
            git = Path(git.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip())
        if git.is_dir():
            return _head(git)
    return None


def _head(git: Path) -> str | None:
    common = git / "commondir"
    shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head[:12]
        name = head.removeprefix("ref: ")
        if (shared / name).is_file():
            return (shared / name).read_text(encoding="utf-8").strip()[:12]
        packed = (shared / "packed-refs").read_text(encoding="utf-8")
    except OSError:
        return None
    return next((line[:12] for line in packed.splitlines() if line.endswith(f" {name}")), None)
