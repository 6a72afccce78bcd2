"""GPU MODE: a folder with task.yml, task.py and reference.py, read from the user's own checkout.

Benchmarks become workloads, tests held-out ones, `generate_input` the recipe (on the CPU, seeded by the judge),
`ref_kernel` the reference. Output buffers among the data are allocated anew, since a kernel returns fresh tensors. The
description is not taken over, and neither is anything that the two functions do not need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from warpwright.formats import gpumode_checks, gpumode_code
from warpwright.formats.base import (
    CannotImport,
    Imported,
    chosen,
    commit_of,
    file_name,
    problem_text,
    read_text,
    workloads_setting,
)
from warpwright.formats.gathering import Gathering

_KNOWN = {
    "files", "lang", "description", "config", "tests", "benchmarks", "test_timeout", "benchmark_timeout",
    "ranked_timeout", "ranking_by", "templates", "seed", "multi_gpu", "libraries", "gpus",
}  # fmt: skip
_MOST_TESTS = 4
Spec = dict[str, Any]


def find(path: Path) -> list[Path]:
    """Return the problem folders: this one, or those below it, also in the folder `problems` of a checkout."""
    if path.is_file():
        return [path.parent] if path.name == "task.yml" else []
    if (path / "task.yml").is_file():
        return [path]
    folders = (path, path / "problems")
    return sorted(
        {one.parent for folder in folders for depth in ("*", "*/*") for one in folder.glob(f"{depth}/task.yml")}
    )


def read(folder: Path, most: int) -> Imported:
    """Raises CannotImport."""
    task = _task(folder)
    files = {path.stem: path for path in folder.glob("*.py")}
    for entry in _entries(task, "files"):
        source = entry.get("source") if isinstance(entry, dict) else None
        if isinstance(source, str) and source.endswith(".py"):
            path = _within(folder, source)
            if path.is_file():
                files.setdefault(path.stem, path)
    reference = folder / "reference.py"
    if not reference.is_file():
        raise CannotImport(f"{folder.name} has no reference.py with generate_input and ref_kernel")
    files.pop("reference", None)
    gathering = Gathering(files)
    found = gathering.module(reference)
    absent = [name for name in ("generate_input", "ref_kernel", "check_implementation")
              if name not in found.bound and name not in found.local]  # fmt: skip
    if absent:
        raise CannotImport(
            f"{folder.name}/reference.py has no {', '.join(absent)}: only problems with these names can be imported"
        )
    tolerance = gpumode_checks.tolerance(found)
    shown, held_out, notes = _specs(task, most)
    gathering.need(reference, ("generate_input", "ref_kernel"))
    body, buffers = gpumode_code.write(gathering.statements(reference), shown, held_out)
    settings = workloads_setting(_workloads(shown, held_out)) + gpumode_checks.setting(tolerance)
    name = file_name(folder.name)
    origin = {
        "format": "gpumode", "leaderboard": folder.name,
        "gpus": [one for one in _entries(task, "gpus") if isinstance(one, str)],
        "packed": body.packed, "buffers": buffers, "commit": commit_of(folder),
    }  # fmt: skip
    about = f"{folder.name}, a problem of GPU MODE in the user's own checkout. Its licence has terms: see there."
    text = problem_text(about, f"{body.imports}\n{settings}\n\n{body.code}", origin)
    if buffers:
        notes = (
            *notes,
            f"output buffers ({', '.join(buffers)}) are allocated in each call: a kernel returns new tensors",
        )
    return Imported(name=name, source=text, notes=(*notes, *gpumode_checks.notes(tolerance)))


def _within(folder: Path, source: str) -> Path:
    """Return the path of a file of the task. Raises CannotImport outside of the checkout, or of the folder's parent."""
    if "\0" in source:
        raise CannotImport(f"{folder.name}/task.yml names the file {source!r}, which no file is called")
    own = folder.absolute()
    root = next((one for one in (own, *own.parents) if (one / ".git").exists()), own.parent).resolve()
    path = (own / source).resolve()
    if not path.is_relative_to(root):
        raise CannotImport(
            f"{folder.name}/task.yml names the file {source!r}, which lies outside of {root}: only in a git checkout "
            "are files further away read"
        )
    return path


def _entries(task: Mapping[str, Any], key: str) -> list[Any]:
    entries = task.get(key) or []
    if not isinstance(entries, list):
        raise CannotImport(f"task.yml: {key} is a {type(entries).__name__} in place of a list")
    return entries


def _task(folder: Path) -> dict[str, Any]:
    path = folder / "task.yml"
    try:
        task = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CannotImport(f"{folder.name}/task.yml is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(task, dict):
        raise CannotImport(f"{folder.name}/task.yml is not a map of settings")
    unknown = sorted(str(key) for key in task if key not in _KNOWN)
    if unknown:
        raise CannotImport(
            f"{folder.name}/task.yml has the unknown key {unknown[0]!r}, which its own loader refuses too"
        )
    if task.get("lang", "py") != "py":
        lang = task["lang"] if isinstance(task["lang"], str) else type(task["lang"]).__name__
        raise CannotImport(f"{folder.name} is written in {lang!r}: only lang: py has a Python reference to read")
    if task.get("multi_gpu"):
        raise CannotImport(f"{folder.name} needs several GPUs (multi_gpu): a kernel is judged on one device")
    return task


def _specs(task: Mapping[str, Any], most: int) -> tuple[list[Spec], list[Spec], tuple[str, ...]]:
    """Return the specs of the shown workloads and of the held-out ones."""
    benchmarks, tests = _list(task, "benchmarks"), _list(task, "tests")
    notes: list[str] = []
    if task.get("ranking_by", "last") == "last" and len(benchmarks) > 1:
        notes.append("ranking_by is 'last': the last benchmark is the workload, the others are held out")
        benchmarks, tests = benchmarks[-1:], benchmarks[:-1] + tests
    if not benchmarks:
        benchmarks, tests = tests[-1:], tests[:-1]
    if not benchmarks:
        raise CannotImport(
            "task.yml has neither benchmarks nor tests, so no sizes are known: add a benchmark to a copy"
        )
    shown = [benchmarks[place] for place in chosen([str(one) for one in benchmarks], most)]
    if len(shown) < len(benchmarks):
        notes.append(f"{len(shown)} of {len(benchmarks)} benchmarks are taken; --workloads takes more")
    fresh = [one for one in tests if one not in shown]
    held_out = [fresh[place] for place in chosen([str(one) for one in fresh], _MOST_TESTS)]
    if len(held_out) < len(fresh):
        notes.append(f"{len(held_out)} of {len(fresh)} tests are held out, the others are left out")
    return shown, held_out, tuple(notes)


def _list(task: Mapping[str, Any], key: str) -> list[Spec]:
    """Return the specs without their seeds and without repetitions: the judge seeds each draw itself."""
    found: list[Spec] = []
    entries = _entries(task, key)
    if not all(isinstance(one, dict) for one in entries):
        raise CannotImport(f"task.yml: {key} is a list of maps, such as {{size: 1024, seed: 1}}")
    for entry in entries:
        spec = {str(name): _value(key, name, value) for name, value in entry.items() if name != "seed"}
        if spec not in found:
            found.append(spec)
    return found


def _value(key: str, name: Any, value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)  # their evaluator hands words over as text
    if not isinstance(value, int | float | str) or not str(name).isidentifier():
        raise CannotImport(
            f"task.yml: {name!r} of {key} is a {type(value).__name__}: values are numbers or words; give the "
            "parts names of their own"
        )
    return value


def _workloads(shown: Sequence[Spec], held_out: Sequence[Spec]) -> list[dict[str, Any]]:
    every: list[tuple[Spec, Spec]] = [(spec, {}) for spec in shown] + [(spec, {"held_out": True}) for spec in held_out]
    found, names = [], set()
    for spec, more in every:
        name = ", ".join(f"{key}={value}" for key, value in spec.items())[:90] or "default"
        if name not in names:
            names.add(name)
            found.append({"name": name, **{gpumode_code.size(key): value for key, value in spec.items()}, **more})
    return found
