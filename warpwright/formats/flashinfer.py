"""FlashInfer-Trace: a definition of a data set (definitions/OP/NAME.json) with its workloads (workloads/OP/NAME.jsonl).

Variable axes are sizes of workloads, numbers among the inputs arguments of the constructor. Whole numbers from
safetensors files (page tables, lengths) are written into the problem file, floats are drawn with their mean and spread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpwright.formats import definition_file, definitions
from warpwright.formats.base import CannotImport, Imported, commit_of, read_json, read_text
from warpwright.formats.trace_workloads import MOST_LINES

_LIMIT_BYTES = 64 << 20


def find(path: Path) -> list[Path]:
    """Return the definitions of a data set, of a folder of its definitions, or this one."""
    if path.is_file():
        return [path] if path.suffix == ".json" and _root(path) is not None else []
    folder = path if _root(path / "any.json") is not None else path / "definitions"
    return sorted(folder.rglob("*.json")) if folder.is_dir() else []


def _root(path: Path) -> Path | None:
    """Return the data set that a definition belongs to."""
    return next((one.parent for one in path.absolute().parents if one.name == "definitions"), None)


def read(path: Path, most: int) -> Imported:
    """Raises CannotImport."""
    root = _root(path)
    if root is None:
        raise CannotImport(f"{path} does not lie in a folder `definitions` of a data set")
    definition = definitions.read(read_json(read_text(path), path.name), path.name, sol=False)
    if not re.fullmatch(r"\w[\w.+-]*", definition.name):  # it names files, and no pattern of them
        raise CannotImport(
            f"{path.name} has the name {definition.name[:80]!r}: a name is letters, digits, and _ . + - after the first"
        )
    entries = [
        one["workload"]
        for one in lines(sorted((root / "workloads").rglob(f"{definition.name}.jsonl")))
        if one.get("definition") == definition.name and isinstance(one.get("workload"), dict)
    ]
    origin = {"format": "flashinfer", "commit": commit_of(path)}
    notes = ["judged to the reference's own accuracy; the data set itself allows errors of 1e-2"]
    return definition_file.write(definition, entries, most=most, root=root, origin=origin, notes=notes)


def lines(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines. Raises CannotImport with the line."""
    for path in paths:
        for number, line in enumerate(read_text(path, _LIMIT_BYTES).splitlines()[:MOST_LINES], 1):
            if line.strip():
                yield read_json(line, f"{path.name}, line {number},")
