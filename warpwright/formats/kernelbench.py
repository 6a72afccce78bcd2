"""KernelBench: one file a problem, `level1/19_ReLU.py`, that has our form already.

The file stays as it is: its sizes are constants of the module, its integers stay integers. KernelBench runs modules in
training mode, so a file with batch norms (whose answer depends on the mode) says `TRAIN = True`; one with dropout stays
in evaluation mode, since its answers would be random.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from warpwright.formats.base import CannotImport, Imported, commit_of, origin_line, parse_python, read_text

_FILE = re.compile(r"(\d+)_(\w*)")
_LEVEL = re.compile(r"level_?(\d+)")
_REMOTE = ("from_pretrained",)


def find(path: Path) -> list[Path]:
    """Return the problem files of a level's folder, of a folder of levels, or one such file."""
    if path.is_file():
        return [path] if path.suffix == ".py" and _LEVEL.fullmatch(path.parent.name) and _FILE.match(path.stem) else []
    inner = path / "KernelBench"
    return list(_below(inner if inner.is_dir() else path))


def _below(folder: Path) -> Iterator[Path]:
    levels = [folder] if _LEVEL.fullmatch(folder.name) else sorted(folder.glob("level*"))
    for level in levels:
        if _LEVEL.fullmatch(level.name):
            yield from sorted((p for p in level.glob("*.py") if _FILE.match(p.stem)), key=_number)


def _number(path: Path) -> tuple[int, str]:
    return int(path.stem.partition("_")[0]), path.stem


def read(path: Path, most: int) -> Imported:
    """Raises CannotImport."""
    text = read_text(path)
    tree = parse_python(text, path.name)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in defined]
    if missing:
        raise CannotImport(f"{path.name} has no {', '.join(missing)}: KernelBench's files have all three")
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if names & set(_REMOTE):
        raise CannotImport(
            f"{path.name} downloads a model (from_pretrained), and a cage has no network: "
            "build the model from its config in a copy of the file, or capture its parts (warpwright capture)"
        )
    level, number = int((_LEVEL.fullmatch(path.parent.name) or ["", "0"])[1]), int(path.stem.partition("_")[0])
    origin = {
        "format": "kernelbench", "level": level, "id": number, "file": path.name, "commit": commit_of(path),
    }  # fmt: skip
    added, notes = _mode(names, text)
    return Imported(name=path.stem, source=f"{text.rstrip()}\n{added}\n\n{origin_line(origin)}\n", notes=notes)


def _mode(names: set[str], text: str) -> tuple[str, tuple[str, ...]]:
    batch_norm = any(name.startswith(("BatchNorm", "SyncBatchNorm")) or name == "batch_norm" for name in names)
    dropout = any(name.startswith(("Dropout", "dropout")) for name in names)
    if re.search(r"^TRAIN\b", text, re.MULTILINE):
        return "", ()
    if dropout:
        return "", ("it has dropout: judged in evaluation mode, where KernelBench runs it in training mode",)
    if batch_norm:
        return "\nTRAIN = True  # as KernelBench runs it\n", ("it has batch norms: judged in training mode, as there",)
    return "", ()
