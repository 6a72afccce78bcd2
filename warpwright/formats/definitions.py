"""Definitions of kernels as FlashInfer-Trace and SOL-ExecBench write them: JSON with axes, inputs and a reference."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.formats.base import CannotImport, parse_python, size_name

DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8", "bool")
SOL_DTYPES = (*DTYPES, "float64")
_OURS = (
    "Model", "get_inputs", "get_init_inputs", "WORKLOADS", "DOMAIN", "PRECISION", "ALLOW_LIBRARY", "TRAIN", "BITWISE",
    "MUTATES", "_draw", "_stored",
)  # fmt: skip
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: `shape` names axes; None for a Python number."""

    shape: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """`constant`, `variable` and `computed` are the axes by kind, the last as expressions of the others."""

    name: str
    op_type: str
    constant: Mapping[str, int]
    variable: tuple[str, ...]
    computed: Mapping[str, str]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    reference: str
    description: str
    constrained: bool = False  # axes depend on each other: no size may be varied alone
    entry: str | None = None  # the function of `reference` that makes the inputs
    sizes: Mapping[str, str] = field(default_factory=dict)  # axes and numbers as sizes of workloads, by their names

    @property
    def scalars(self) -> list[str]:
        return [name for name, tensor in self.inputs.items() if tensor.shape is None]


def read(data: Mapping[str, Any], where: str, *, sol: bool, reference: str = "") -> Definition:
    """Return a definition. Raises CannotImport."""
    absent = [key for key in ("name", "axes", "inputs", "outputs") if key not in data]
    absent += ["op_type"] if not sol and "op_type" not in data else []
    text = data.get("reference") or reference
    absent += [] if text else ["reference"]
    if absent:
        raise CannotImport(f"{where} has no {', '.join(absent)}, which a definition must have")
    constant, variable, computed = _axes(data["axes"], where, sol=sol)
    axes = {*constant, *variable, *computed}
    inputs, outputs = (_tensors(data[key], key, axes, where, sol=sol) for key in ("inputs", "outputs"))
    if set(inputs) & set(outputs):
        raise CannotImport(f"{where}: {sorted(set(inputs) & set(outputs))[0]} is an input and an output")
    entry = data.get("custom_inputs_entrypoint") if sol else None
    _check_reference(str(text), where, list(inputs), entry)
    taken: dict[str, str] = {}
    for name in (*variable, *(one for one, tensor in inputs.items() if tensor.shape is None)):
        taken[name] = size_name(name, taken.values())
    return Definition(
        name=str(data["name"]), op_type=str(data.get("op_type") or "other"), constant=constant, variable=variable,
        computed=computed, inputs=inputs, outputs=outputs, reference=str(text), entry=entry, sizes=taken,
        constrained=bool(data.get("constraints")),
        description=str(data.get("description") or ""),
    )  # fmt: skip


def _axes(data: Any, where: str, *, sol: bool) -> tuple[dict[str, int], tuple[str, ...], dict[str, str]]:
    if not isinstance(data, dict):
        raise CannotImport(f"{where}: axes is a map of names")
    constant: dict[str, int] = {}
    variable: list[str] = []
    computed: dict[str, str] = {}
    for name, axis in data.items():
        kind = axis.get("type") if isinstance(axis, dict) else None
        if not name.isidentifier() or keyword.iskeyword(name):
            raise CannotImport(f"{where}: the axis {name!r} is no Python name")
        if kind == "const" and type(axis.get("value")) is int:
            constant[name] = axis["value"]
        elif kind == "var":
            variable.append(name)
        elif kind == "expr" and sol:
            computed[name] = str(axis.get("expression"))
        else:
            kinds = "const (with a whole value), var" + (", expr" if sol else "")
            raise CannotImport(f"{where}: the axis {name} has the type {kind!r}; the types are {kinds}")
    for name, expression in computed.items():
        _check_expression(expression, name, {*constant, *variable}, where)
    return constant, tuple(variable), computed


def _check_expression(text: str, name: str, known: set[str], where: str) -> None:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotImport(f"{where}: the axis {name} is {text!r}, which does not parse") from error
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    numbers = all(type(node.value) is int for node in nodes if isinstance(node, ast.Constant))
    if not all(isinstance(node, _ARITHMETIC) for node in nodes) or not numbers or names - known:
        raise CannotImport(f"{where}: the axis {name} is {text!r}: only arithmetic of const and var axes is supported")


def _tensors(data: Any, key: str, axes: set[str], where: str, *, sol: bool) -> dict[str, Tensor]:
    if not isinstance(data, dict) or not data:
        raise CannotImport(f"{where}: {key} is a map of names that is not empty")
    found = {}
    for name, spec in data.items():
        dtype, shape = (spec.get("dtype"), spec.get("shape")) if isinstance(spec, dict) else (None, None)
        if not str(name).isidentifier() or keyword.iskeyword(name):
            raise CannotImport(f"{where}: the {key[:-1]} {name!r} is no Python name")
        if dtype not in (SOL_DTYPES if sol else DTYPES):
            raise CannotImport(
                f"{where}: {name} has the dtype {dtype!r}, which the judge does not draw or compare: give it packed in "
                f"int8 with a reference that unpacks it; it can be {', '.join(SOL_DTYPES if sol else DTYPES)}"
            )
        if shape is not None and not (
            isinstance(shape, list) and all(isinstance(one, str) and one in axes for one in shape)
        ):
            raise CannotImport(f"{where}: the shape of {name} is {shape!r}: a list of names of axes, or null")
        found[str(name)] = Tensor(None if shape is None else tuple(shape), str(dtype))
    return found


def _check_reference(text: str, where: str, inputs: list[str], entry: str | None) -> None:
    tree = parse_python(text, f"{where}: reference")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "run" not in functions:
        raise CannotImport(f"{where}: reference has no top-level function run")
    arguments = functions["run"].args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if names != inputs:
        raise CannotImport(
            f"{where}: run takes {', '.join(names)}, but inputs are {', '.join(inputs)}: they must agree"
        )
    if entry is not None and (not isinstance(entry, str) or entry not in functions):
        raise CannotImport(f"{where}: custom_inputs_entrypoint is {entry!r}, and reference has no such function")
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)} | stored
    clash = sorted(bound & set(_OURS))
    if clash:
        raise CannotImport(f"{where}: reference defines {clash[0]}, a name that the problem file needs: rename it")
