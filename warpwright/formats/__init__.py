"""Other people's forms of problems, read into problem files. A form is one file here and one line in the table.

The readers work on text alone (AST, JSON, YAML): nothing that a user or a project wrote is imported or run here. The
judge runs the result in its cage, as it runs every reference. A reader has two functions: `find(path)` returns the
items of its form below a path (nothing if the path has another form; it looks at names and cheap marks only), and
`read(item, most)` returns an `Imported` with at most so many shown workloads, or raises CannotImport with the reason
and the remedy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpwright.errors import BadUsage
from warpwright.formats import backendbench, flashinfer, gpumode, kernelbench, sol
from warpwright.formats.base import CannotImport, Imported, Refusal, file_name

MOST_WORKLOADS = 8


@dataclass(frozen=True, slots=True)
class Reader:
    """`find` and `read` of a form, and the words for it."""

    about: str
    find: Callable[[Path], Sequence[Any]]
    read: Callable[[Any, int], Imported]


READERS: Mapping[str, Reader] = {
    "kernelbench": Reader("a KernelBench file or level folder", kernelbench.find, kernelbench.read),
    "gpumode": Reader("a GPU MODE problem folder (task.yml)", gpumode.find, gpumode.read),
    "sol": Reader("a SOL-ExecBench folder (definition.json)", sol.find, sol.read),
    "flashinfer": Reader("a FlashInfer-Trace definition or data set", flashinfer.find, flashinfer.read),
    "backendbench": Reader("a BackendBench trace of operators", backendbench.find, backendbench.read),
}


def recognise(path: Path) -> tuple[Reader, Sequence[Any]] | None:
    """Return the reader of a path with the items that it found; None for a plain file. Raises CannotImport."""
    for reader in READERS.values():
        if found := reader.find(path):
            return reader, found
    return None


def import_all(target: str, most: int = MOST_WORKLOADS) -> Iterator[Imported | Refusal]:
    """Yield the problems of a path such as `folder` or `folder#NAME`. Raises BadUsage."""
    path, wanted = _split(target)
    if not path.exists():
        raise BadUsage(f"{path}: No such file or directory")
    found = recognise(path)
    if found is None:
        ours = ". A problem file of Warpwright needs no import" if path.suffix == ".py" else ""
        raise BadUsage(f"{path} has none of the forms that can be imported: {_forms()}{ours}")
    reader, items = found
    named = _wanted(items, wanted)
    if not named:
        raise BadUsage(f"{path} has no {wanted!r}")
    for name, item in named.items():
        try:
            made = reader.read(item, most)
        except CannotImport as error:
            yield Refusal(name, str(error))
        except RecursionError:
            yield Refusal(name, "its code or data is nested too deeply to be read")
        else:
            yield made if name == _name(item) else replace(made, name=file_name(name))


def import_one(target: str, most: int = MOST_WORKLOADS) -> Imported | None:
    """Return the problem that a path names; None for a file that is in our own form. Raises BadUsage."""
    path, wanted = _split(target)
    found = recognise(path) if path.exists() else None
    if found is None:
        if path.is_dir():
            raise BadUsage(f"{path} has none of the forms that can be imported: {_forms()}")
        return None
    names = list(_wanted(found[1], wanted))
    if len(names) > 1:
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        which = "" if wanted is None else f" {wanted!r}"
        raise BadUsage(
            f"{path} has {len(names)} problems{which}: name one, such as {path}#{names[0]} (there are {shown})"
        )
    made = next(import_all(target, most))
    if isinstance(made, Refusal):
        raise BadUsage(f"{made.name}: {made.reason}")
    return made


def _split(target: str) -> tuple[Path, str | None]:
    if Path(target).exists():
        return _named(target), None
    path, mark, name = target.rpartition("#")
    return (_named(path), name) if mark else (_named(target), None)


def _named(path: str) -> Path:
    """Return a path that ends in a name, as `.` and `..` do not."""
    return Path(path) if Path(path).name not in ("", "..") else Path(path).resolve()


def _wanted(items: Sequence[Any], wanted: str | None) -> dict[str, Any]:
    """Return the items that a name, or the number before it, stands for, by names that differ; None stands for all."""
    plain = Counter(_name(item) for item in items)
    found: dict[str, Any] = {}
    for item in items:
        name = _name(item)
        own = name if plain[name] == 1 else f"{item.parent.name}_{name}"
        if wanted in (None, own, name, name.partition("_")[0]):
            found[own] = item
    return found


def _name(item: Any) -> str:
    return item.stem if isinstance(item, Path) and item.suffix in (".py", ".json") else str(item.name)


def _forms() -> str:
    return ", ".join(reader.about for reader in READERS.values())


__all__ = ["MOST_WORKLOADS", "READERS", "CannotImport", "Imported", "Refusal", "import_all", "import_one"]
