"""Read a Problem from its source text, statically: nothing in it is executed here.

These names may be declared at the top level, all optional and all literals: WORKLOADS, DOMAIN, PRECISION,
ALLOW_LIBRARY, TRAIN, BITWISE, MUTATES. A plain function `reference` in place of `class Model` is normalised to a Model.
Names that would be ignored are refused: a size that no recipe takes, a setting that is misspelt or set in another way.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evaluator import recipe_sizes
from evaluator.errors import ProblemError
from evaluator.syntax import TOO_DEEP, parse
from evaluator.types import DeviceKind, Domain, LibraryPolicy, Precision, Problem, Workload

MAX_SOURCE_BYTES = 1 << 20
_SETTINGS = ("WORKLOADS", "DOMAIN", "PRECISION", "ALLOW_LIBRARY", "TRAIN", "BITWISE", "MUTATES")
_RESERVED = ("name", "weight", "device", "held_out")
_SIMILAR = 0.8  # of the characters of a misspelt setting
_CHANGING_METHODS = ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "setdefault", "sort", "update")

# Appended to a reference that is a plain function. The names are ours, so no name in the module clashes by accident.
_MODEL_OF_FUNCTION = '''

import torch as _warpwright_torch


class Model(_warpwright_torch.nn.Module):
    """The plain function `reference`, as a Module."""

    def forward(self, *inputs):
        return reference(*inputs)
'''


def read_problem(source: str | bytes, name: str) -> Problem:
    """Return the Problem that `source` describes. Raise ProblemError with the line and a remedy."""
    text = decode_source(source)
    tree = _parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if "get_inputs" not in functions:
        raise ProblemError(
            "there is no function get_inputs() at the top level: write one (`def`) that returns a list of input tensors"
        )
    if "Model" not in classes:
        if "reference" not in functions:
            raise ProblemError(
                "there is neither `class Model(nn.Module)` nor a function `reference(...)` at the top level: write one"
            )
        text += _MODEL_OF_FUNCTION
    text = recipe_sizes.constants_as_arguments(text)
    settings = _settings(tree)
    _check_misspelt_settings(tree, settings)
    precision, budget = _precision(settings)
    try:
        return Problem(
            name=name,
            source=text,
            workloads=_workloads(settings, recipe_sizes.known_sizes(text)),
            domain=Domain(_choice(settings, "DOMAIN", [d.value for d in Domain], Domain.DECLARED.value)),
            precision=precision,
            error_budget=budget,
            allow_library=LibraryPolicy.ALLOWED if _flag(settings, "ALLOW_LIBRARY", True) else LibraryPolicy.FORBIDDEN,
            train=_flag(settings, "TRAIN", False),
            bitwise=_flag(settings, "BITWISE", False),
            mutates=_mutates(settings),
        )
    except ValueError as error:
        raise ProblemError(str(error)) from error


def describe_problem(source: str | bytes) -> str:
    """Return the module's docstring, which describes the Problem to people; "" if it has none."""
    return ast.get_docstring(_parse(decode_source(source))) or ""


def decode_source(source: str | bytes) -> str:
    """Return source text with LF line ends and without a byte order mark. Raise ProblemError if it is not UTF-8."""
    if isinstance(source, bytes):
        try:
            source = source.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProblemError(f"not UTF-8 text (byte {error.start}): save the file as UTF-8") from error
    if any("\ud800" <= character <= "\udfff" for character in source):
        raise ProblemError("not UTF-8 text: save the file as UTF-8")
    text = with_line_feeds(source)
    if "\0" in text:
        raise ProblemError(
            "there is a NUL character: this is not Python source", line=text[: text.index("\0")].count("\n") + 1
        )
    if len(text.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        raise ProblemError(f"longer than {MAX_SOURCE_BYTES >> 20} MiB")
    return text


def with_line_feeds(source: str) -> str:
    """Return source text with LF line ends and without a byte order mark: lines are then counted as Python does."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _parse(text: str) -> ast.Module:
    try:
        return parse(text)
    except SyntaxError as error:
        raise ProblemError(f"does not parse: {error.msg}", line=error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise ProblemError(f"does not parse: {TOO_DEEP}") from error


class _Setting:
    def __init__(self, value: Any, line: int) -> None:
        self.value, self.line = value, line


def _settings(tree: ast.Module) -> dict[str, _Setting]:
    """Return the settings. Raise ProblemError for one that is set or changed in any way but `NAME = literal`."""
    found: dict[str, _Setting] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        plain = [target for target in targets if isinstance(target, ast.Name) and target.id in _SETTINGS]
        for name, line in _changed_settings(node, plain):
            raise ProblemError(f"{name} is set by a line of its own, `{name} = ...`, at the top level", line=line)
        for target in plain:
            if value is None:
                continue
            try:
                found[target.id] = _Setting(ast.literal_eval(value), node.lineno)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
                raise ProblemError(
                    f"{target.id} must be a literal (numbers, strings, lists, dicts): it is read, never run",
                    line=node.lineno,
                ) from error
    return found


def _changed_settings(node: ast.stmt, plain: Collection[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield each setting, with its line, that a statement of the module changes in a way that is not read."""
    for one in ast.walk(node):
        named: list[str] = one.names if isinstance(one, ast.Global) else []
        if one is node and isinstance(one, ast.FunctionDef | ast.ClassDef):
            named = [one.name]
        elif one is node and isinstance(one, ast.Import | ast.ImportFrom):
            named = [alias.asname or alias.name for alias in one.names]
        yield from ((name, node.lineno) for name in named if name in _SETTINGS)
    for one in _executed(node):
        if isinstance(one, ast.Name) and one.id in _SETTINGS and one not in plain and not isinstance(one.ctx, ast.Load):
            yield one.id, one.lineno
        owner: ast.AST | None = None
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGING_METHODS:
            owner = one.func
        elif isinstance(one, ast.Attribute | ast.Subscript) and not isinstance(one.ctx, ast.Load):
            owner = one
        while isinstance(owner, ast.Attribute | ast.Subscript):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id in _SETTINGS:
            yield owner.id, owner.lineno


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that run with the module, without the bodies of functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _executed(child)


def _check_misspelt_settings(tree: ast.Module, settings: Mapping[str, _Setting]) -> None:
    """Raise ProblemError for a constant that nothing reads and whose name is nearly a setting's."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)} | set(settings)
    for node in (one for statement in tree.body for one in _executed(statement)):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store) or node.id in read:
            continue
        near = difflib.get_close_matches(node.id.upper(), _SETTINGS, 1, _SIMILAR)
        if near:
            raise ProblemError(
                f"{node.id} is no setting: did you mean {near[0]}? The settings are {', '.join(_SETTINGS)}",
                line=node.lineno,
            )


def _choice(settings: Mapping[str, _Setting], name: str, values: list[str], default: str) -> str:
    setting = settings.get(name)
    if setting is None:
        return default
    if setting.value not in values:
        raise ProblemError(f"{name} is one of {', '.join(map(repr, values))}, not {setting.value!r}", line=setting.line)
    return str(setting.value)


def _flag(settings: Mapping[str, _Setting], name: str, default: bool) -> bool:
    setting = settings.get(name)
    if setting is None:
        return default
    if not isinstance(setting.value, bool):
        raise ProblemError(f"{name} is True or False, not {setting.value!r}", line=setting.line)
    return setting.value


def _precision(settings: Mapping[str, _Setting]) -> tuple[Precision, float | None]:
    setting = settings.get("PRECISION")
    if setting is not None and isinstance(setting.value, dict):
        budget = setting.value.get("budget")
        good = isinstance(budget, int | float) and not isinstance(budget, bool) and 0 < budget < 1
        if set(setting.value) != {"budget"} or not good:
            raise ProblemError('PRECISION as a dict is {"budget": relative error between 0 and 1}', line=setting.line)
        return Precision.BUDGET, float(budget or 0)
    names = [p.value for p in Precision if p is not Precision.BUDGET]
    return Precision(_choice(settings, "PRECISION", names, Precision.EXACT.value)), None


def _mutates(settings: Mapping[str, _Setting]) -> tuple[int, ...]:
    setting = settings.get("MUTATES")
    if setting is None:
        return ()
    value = setting.value
    if not isinstance(value, list | tuple) or any(type(n) is not int or n < 0 for n in value):
        raise ProblemError("MUTATES is a list of positions of inputs, counted from 0", line=setting.line)
    return tuple(value)


def _workloads(settings: Mapping[str, _Setting], known: Collection[str] | None) -> tuple[Workload, ...]:
    setting = settings.get("WORKLOADS")
    if setting is None:
        return (Workload(name="default"),)
    entries = setting.value
    if not isinstance(entries, list | tuple) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ProblemError('WORKLOADS is a list of dicts such as {"name": "decode", "rows": 16}', line=setting.line)
    try:
        return tuple(_workload(entry, known) for entry in entries)
    except (ValueError, TypeError) as error:
        raise ProblemError(f"WORKLOADS: {error}", line=setting.line) from error


def _workload(entry: dict[Any, Any], known: Collection[str] | None) -> Workload:
    sizes = {key: value for key, value in entry.items() if key not in _RESERVED}
    if not all(isinstance(key, str) and key.isidentifier() for key in entry):
        raise ValueError(f"names of sizes are identifiers: {entry!r}")
    unknown = [key for key in sizes if known is not None and key not in known]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no argument of get_inputs or get_init_inputs: these take "
            f"{', '.join(known or ()) or 'no sizes'}; a workload may also have {', '.join(_RESERVED)}"
        )
    recipe_sizes.check_numbers(sizes)
    held_out, weight, device = entry.get("held_out", False), entry.get("weight", 1.0), entry.get("device")
    if not isinstance(held_out, bool):
        raise ValueError(f"held_out is True or False, not {held_out!r}")
    if not isinstance(weight, int | float) or isinstance(weight, bool):
        raise ValueError(f"weight is a number, not {weight!r}")
    if device not in (None, *(kind.value for kind in DeviceKind)):
        raise ValueError(f'device is "cpu" or "cuda", not {device!r}')
    name = entry.get("name") or (", ".join(f"{key}={value}" for key, value in sizes.items()) or "default")
    if not isinstance(name, str):
        raise ValueError(f"name is a string, not {name!r}")
    return Workload(
        name=name, sizes=sizes, weight=float(weight), device=DeviceKind(device) if device else None, held_out=held_out
    )
