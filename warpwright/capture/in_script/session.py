"""Run a user's script under the recorder, choose its slowest parts, and write their problem files."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import settings
from .alike import Alike, exchangeable
from .files import Folder
from .recording import Form, Part, Recorder, leaves_of
from .tracing import CannotTrace, Traced, trace
from .writing import counted, problem

_MOST_FORMS = 6  # workloads of a problem
_SAME = 0.97  # a part that takes so much of its caller's time is the caller
_LEAST_SHARE = 0.001


def main(options: Mapping[str, Any]) -> int:
    """Return the exit status: 0 with at least one problem file."""
    script, folder = options["script"], Folder(Path(options["output"]), overwrite=options["overwrite"])
    sys.argv = [script, *options["arguments"]]
    sys.path[0] = str(Path.cwd() if options["module"] else Path(script).parent)
    recorder = Recorder()
    with recorder.watching():
        if options["only"]:
            _watch(recorder, options["only"])
        if options["module"]:
            _check_module(script)
        try:
            if options["module"]:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                print(f"capture: the script ended with {end.code}; nothing is written", file=sys.stderr)
                return 1
    return write(recorder, folder, options["most"], options["largest"])


def _check_module(name: str) -> None:
    """End with a message where `python -m NAME` could not find what it runs."""
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        raise SystemExit(f"capture: -m {name}: {error}") from error
    if found is None:
        raise SystemExit(f"capture: -m {name}: no module of that name is below {Path.cwd()}, or it has no __main__")


def _watch(recorder: Recorder, only: str) -> None:
    """Replace a function in its module, before the script imports it; modules are watched by their class's own name."""
    module_name, _, name = only.partition(":")
    if module_name == "__main__":  # a class of the script itself
        recorder.only = only
        return
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"capture: {only} cannot be found with this Python: {error}") from error
    recorder.only = f"{found.__module__}:{found.__qualname__}"
    if not isinstance(found, type):
        setattr(module, name, recorder.function(found))


def write(recorder: Recorder, folder: Folder, most: int, largest: int) -> int:
    """Write the problem files of the slowest parts, and what put_back needs. Return the exit status."""
    only = recorder.only
    chosen: list[tuple[Part, str]] = []
    told: dict[str, Any] = {}
    left: list[str] = []
    ranked = sorted(recorder.parts.values(), key=lambda one: -one.seconds)
    for part in ranked:
        share = part.seconds / recorder.seconds if recorder.seconds else 0.0
        if len(chosen) == most or share < _LEAST_SHARE:
            break
        about = f"{part.name} ({100 * share:.0f} %)"
        if (only and part.name != only) or not part.forms or any(_is_within(part, one) for one, _ in chosen):
            continue
        try:
            forms, structure = _forms(part)
            traced = trace(part, forms, largest)
            text = problem(part, traced, share, recorder.seconds)
        except CannotTrace as error:
            left.append(f"{about}: {error}")
            continue
        except Exception as error:  # noqa: BLE001  tensors of the user's own kinds may raise anything
            left.append(f"{about}: it cannot be written ({type(error).__name__}: {_line(error)})")
            continue
        alike = exchangeable(part, traced, largest)
        if alike.others:
            left.append(
                f"{alike.others} of {len(part.instances)} modules of {part.name}: they compute something else "
                f"({', '.join(alike.differing)}), and put_back leaves them as they are"
            )
        name = _name(part.name, told)
        told[name] = _told(part, traced, structure, share, alike)
        chosen.append((part, name))
        if folder.write(f"{name}.py", text):
            spent = f"{100 * share:.0f} % of the time, {counted(part.calls, 'call')}"
            print(f"{folder.path / name}.py: {spent} of {part.name}")
    seen = {part.name for part in recorder.parts.values() if part.forms}
    for name, reason in recorder.unseen.items():
        if name not in seen and only in (None, name):
            left.append(f"{name}: its calls cannot be recorded ({_line(reason)})")
    for line in left:
        print(f"capture: left out: {line}", file=sys.stderr)
    if not chosen:
        why = f"{only} was not called" if only else "the script calls no module with tensors"
        print(f"capture: nothing to write{'' if left else ': ' + why}", file=sys.stderr)
        return 1
    none = not folder.written
    folder.write("put_back.py", _put_back())
    folder.close(json.dumps(told, indent=2) + "\n")
    return int(none)


def _line(text: Any) -> str:
    return " ".join(str(text).split())[:200]


def _put_back() -> str:
    """Return put_back.py: its text, and the functions that read a module's settings."""
    text = Path(__file__).with_name("put_back.py.txt").read_text(encoding="utf-8")
    parts = [text, *(inspect.getsource(one) for one in settings.FUNCTIONS)]
    return "\n\n\n".join(one.strip() for one in parts) + "\n"


def _is_within(part: Part, chosen: Part) -> bool:
    """Return whether nearly all of a chosen part's time is this part's."""
    return chosen.identity in part.callers and _SAME * chosen.seconds <= part.seconds <= chosen.seconds


def _forms(part: Part) -> tuple[list[Form], str]:
    """Return the forms of the structure that takes the most time, the slowest first, and that structure."""
    groups: dict[str, list[Form]] = {}
    for form in part.forms.values():
        if form.arguments is not None and form.calls:
            groups.setdefault(leaves_of(form.arguments)[1], []).append(form)
    refused = [form.refused for form in part.forms.values() if form.refused]
    if not groups and refused:
        raise CannotTrace(refused[0])
    if not groups:
        raise CannotTrace("its arguments are too large to keep a copy of")
    key = max(groups, key=lambda one: sum(form.seconds for form in groups[one]))
    return sorted(groups[key], key=lambda form: -form.seconds)[:_MOST_FORMS], key


def _name(full: str, taken: Mapping[str, Any]) -> str:
    last = full.rpartition(":")[2].rpartition(".")[2]
    name = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)).lower().strip("_") or "part"
    number = 1
    while (name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return name if number == 1 else f"{name}_{number}"


def _told(part: Part, traced: Traced, structure: str, share: float, alike: Alike) -> dict[str, Any]:
    """Return what put_back needs to know of a part."""
    target = part.target
    module = target if isinstance(target, torch.nn.Module) else None
    arguments = traced.forms[0].arguments
    leaves, spec = pytree.tree_flatten(arguments)
    dtypes = [str(one.dtype) for one in leaves if isinstance(one, torch.Tensor)]  # equal in all forms of one structure
    return {
        "class": part.name, "repr": repr(target), "state": _state(module) if module is not None else [],
        "originals": traced.originals, "constants": list(traced.constants),
        "settings": alike.settings, "moving": alike.moving,
        "training": [bool(one.training) for one in module.modules()] if module is not None else [],
        "share": round(share, 4), "calls": part.calls,
        "forms": [[list(pair) for pair in zip(form.shapes, dtypes, strict=True)] for form in traced.forms],
        "structure": str(spec), "others": [repr(one) for one in leaves if not isinstance(one, torch.Tensor)],
        "kept": list(traced.kept), "output": traced.output, "operations": traced.nodes,
    }  # fmt: skip


def _state(module: torch.nn.Module) -> list[list[Any]]:
    """Return each tensor's name, shape, dtype, and the first name of the same tensor, as put_back does."""
    own = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    first: dict[int, str] = {}
    return [[name, list(t.shape), str(t.dtype), first.setdefault(id(t), name)] for name, t in own]
