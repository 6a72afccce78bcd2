"""SOL-ExecBench: a folder with definition.json, workload.jsonl and (mostly) reference.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpwright.formats import definition_file, definitions
from warpwright.formats.base import Imported, commit_of, read_json, read_text
from warpwright.formats.flashinfer import lines

_ELEMENT = 8  # the judge allows single elements so many times a budget
_RTOL, _RATIO = 1e-2, 0.99  # where a workload names no tolerance


def find(path: Path) -> list[Path]:
    """Return the problem folders: this one, or those below it."""
    if path.is_file():
        return [path.parent] if path.name == "definition.json" and (path.parent / "workload.jsonl").is_file() else []
    if (path / "definition.json").is_file():
        return [path]
    return sorted(one.parent for depth in ("*", "*/*") for one in path.glob(f"{depth}/definition.json"))


def read(folder: Path, most: int) -> Imported:
    """Raises CannotImport."""
    path, beside = folder / "definition.json", folder / "reference.py"
    reference = read_text(beside) if beside.is_file() else ""
    data = read_json(read_text(path), f"{folder.name}/definition.json")
    definition = definitions.read(data, f"{folder.name}/definition.json", sol=True, reference=reference)
    entries = list(lines([folder / "workload.jsonl"]))
    rtol = min((_tolerance(one, "max_rtol", _RTOL) for one in entries), default=_RTOL)
    ratio = max((_tolerance(one, "required_matched_ratio", _RATIO) for one in entries), default=_RATIO)
    settings = ""
    if 1e-5 <= rtol < 1:
        settings = f'PRECISION = {{"budget": {rtol / _ELEMENT:.3g}}}  # max_rtol {rtol:g} for an element\n'
    notes = [
        f"accuracy: {rtol:g} (the strictest max_rtol) of the size of an element's row, for every element; there "
        f"{ratio:.3g} of them have to be right"
    ]
    origin = {"format": "sol", "commit": commit_of(folder)}
    return definition_file.write(
        definition, entries, most=most, root=folder, origin=origin, settings=settings, notes=notes
    )


def _tolerance(entry: dict[str, Any], key: str, default: float) -> float:
    found = entry.get("tolerance")
    value = found.get(key, default) if isinstance(found, dict) else default
    return float(value) if isinstance(value, int | float) else default
