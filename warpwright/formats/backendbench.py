"""BackendBench: an operator of PyTorch with traced arguments, from a trace file or rows of JSON lines.

    Operator: aten.add.Tensor
    cnt: 3, ((T([2, 3], f16), T([2, 3], f16)), {'alpha': 2})

JSON lines have `op_name`, `args` and `count`. The text of arguments is parsed, never evaluated. Each distinct call is a
workload with its count as weight.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.formats.base import (
    CannotImport,
    Imported,
    chosen,
    file_name,
    problem_text,
    read_text,
    workloads_setting,
)

_LIMIT_BYTES = 64 << 20
_OPERATOR = re.compile(r"aten\.(\w+)\.(\w+)")
_COUNT = re.compile(r"cnt: (\d+), (.*)")
_DTYPES = {
    "bf16": "bfloat16", "f64": "float64", "f32": "float32", "f16": "float16", "c64": "complex64",
    "c128": "complex128", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "b8": "bool", "u8": "uint8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """The calls of one operator in a file."""

    path: Path
    operator: str

    @property
    def name(self) -> str:
        return self.operator


def find(path: Path) -> list[Trace]:
    """Return the operators of a trace file."""
    if path.is_dir() or path.suffix not in (".txt", ".jsonl", ".parquet"):
        return []
    if path.suffix == ".parquet":
        raise CannotImport(
            f"{path.name}: Parquet is not read here. Write it as JSON lines with op_name, args and count: "
            "pandas.read_parquet(FILE).to_json('traces.jsonl', orient='records', lines=True)"
        )
    return [Trace(path, operator) for operator in dict.fromkeys(operator for operator, _, _ in _rows(path))]


def _rows(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield operator, count and arguments of each call."""
    operator = ""
    for line in read_text(path, _LIMIT_BYTES).splitlines():
        if path.suffix == ".jsonl":
            try:
                row = json.loads(line) if line.strip() else None
            except ValueError:
                row = None
            if isinstance(row, dict) and isinstance(row.get("op_name"), str) and isinstance(row.get("args"), str):
                yield row["op_name"], _whole(row.get("count")), row["args"]
        elif line.startswith("Operator: "):
            operator = line.removeprefix("Operator: ").strip()
        elif operator and (found := _COUNT.match(line)):
            yield operator, int(found[1]), found[2]


def _whole(value: Any) -> int:
    """Return a count, which tables with gaps write as 5.0 and some as text; 1 where there is none."""
    try:
        count = float(value)
    except (TypeError, ValueError):
        return 1
    return int(count) if count >= 1 and count.is_integer() else 1


def read(trace: Trace, most: int) -> Imported:
    """Raises CannotImport."""
    found = _OPERATOR.fullmatch(trace.operator)
    if found is None:
        raise CannotImport(f"{trace.operator} is no operator such as aten.add.Tensor")
    base, overload = found[1], found[2]
    if base.endswith("_") or overload.endswith("out"):
        raise CannotImport(
            f"{trace.operator} writes into its arguments: import the functional overload, such as "
            f"aten.{base.rstrip('_')}.{'default' if overload.endswith('out') else overload}"
        )
    counts: dict[str, int] = {}
    for operator, count, text in _rows(trace.path):
        if operator == trace.operator:
            counts[text] = counts.get(text, 0) + max(1, count)
    calls = [_Call.read(text, count, trace.operator) for text, count in counts.items()]
    calls = sorted((one for one in calls if one.tensors), key=lambda one: (-one.count, one.elements))
    if not calls:
        raise CannotImport(f"{trace.operator} has no call with a tensor in {trace.path.name}")
    taken = [calls[place] for place in chosen([one.text for one in calls], most)]
    body = _body(f"torch.ops.aten.{base}.{overload}", taken)
    about = f"{trace.operator} with the arguments of {trace.path.name}."
    left = f"{len(taken)} of {len(calls)} calls are taken; --workloads takes more"
    origin = {"format": "backendbench", "operator": trace.operator}
    return Imported(
        name=file_name(f"{base}__{overload}"),
        source=problem_text(about, body, origin),
        notes=(left,) if len(taken) < len(calls) else (),
    )


@dataclass(frozen=True, slots=True)
class _Call:
    """One set of arguments: `tensors` as recipes, `template` as source of args and kwargs that reads `t[N]`."""

    text: str
    count: int
    tensors: tuple[str, ...]
    template: str
    elements: int

    @classmethod
    def read(cls, text: str, count: int, operator: str) -> _Call:
        for short in _DTYPES:
            text = text.replace(f"'{short}'", short)
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotImport(f"{operator}: the arguments {text[:80]!r} do not parse") from error
        reader = _Arguments(operator)
        pair = isinstance(tree, ast.Tuple) and len(tree.elts) == 2 and isinstance(tree.elts[1], ast.Dict)
        if not pair or not isinstance(tree, ast.Tuple):
            raise CannotImport(f"{operator}: arguments are written ((...), {{...}}), not {text[:80]!r}")
        template = ast.unparse(ast.fix_missing_locations(reader.visit(tree)))
        return cls(text, count, tuple(reader.tensors), template, reader.elements)


class _Arguments(ast.NodeTransformer):
    """Replaces T(shape, dtype) by a place in a list, and refuses everything that is no plain value."""

    def __init__(self, operator: str) -> None:
        self.operator, self.tensors, self.elements = operator, list[str](), 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != "T" or node.keywords or len(node.args) not in (2, 3):
            raise self._refused(node)
        shape, dtype = _numbers(node.args[0]), ast.unparse(node.args[1])
        stride = _numbers(node.args[2]) if len(node.args) == 3 else None
        if shape is None or dtype not in _DTYPES or (len(node.args) == 3 and stride is None):
            raise self._refused(node)
        count = 1
        for one in shape:
            count *= one
        self.elements += count
        more = f", {tuple(stride)!r}" if stride else ""
        self.tensors.append(f"_tensor({tuple(shape)!r}, torch.{_DTYPES[dtype]}{more})")
        return ast.parse(f"t[{len(self.tensors) - 1}]", mode="eval").body

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in _DTYPES:
            return ast.parse(f"torch.{_DTYPES[node.id]}", mode="eval").body
        if node.id in ("inf", "nan"):
            return ast.parse(f"float('{node.id}')", mode="eval").body
        raise self._refused(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = ast.unparse(node).replace("th.", "torch.")
        if text.removeprefix("torch.") in {*_DTYPES.values(), "strided", "contiguous_format"}:
            return ast.parse(text, mode="eval").body
        raise self._refused(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        plain = (ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
        if not isinstance(node, plain):
            raise self._refused(node)
        return super().generic_visit(node)

    def _refused(self, node: ast.AST) -> CannotImport:
        return CannotImport(
            f"{self.operator}: {ast.unparse(node)[:80]} among the arguments is not supported: tensors T(shape, dtype), "
            "numbers, strings, lists and dtypes are. Leave that call out of a copy of the file"
        )


def _numbers(node: ast.expr) -> list[int] | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    good = isinstance(value, list | tuple) and all(type(one) is int and one >= 0 for one in value)
    return list(value) if good else None


_HELPER = """
def _tensor(shape, dtype, stride=None):
    extent = shape if stride is None else (1 + sum((size - 1) * step for size, step in zip(shape, stride)),)
    if dtype.is_floating_point or dtype.is_complex:
        made = torch.rand(extent, dtype=dtype)
    else:
        made = torch.randint(0, 2, extent, dtype=dtype)
    return made if stride is None else made.as_strided(shape, stride)
"""


def _body(operator: str, calls: list[_Call]) -> str:
    rows = [{"name": str(place), "case": str(place), "weight": float(call.count)} for place, call in enumerate(calls)]
    inputs = "".join(f'    "{place}": lambda: [{", ".join(call.tensors)}],\n' for place, call in enumerate(calls))
    same = len({call.template for call in calls}) == 1
    arguments = "".join(f'    "{place}": lambda t: {call.template},\n' for place, call in enumerate(calls))
    table = "" if same else f"_ARGUMENTS = {{\n{arguments}}}\n\n\n"
    init = "" if same else (
        "    def __init__(self, case):\n        super().__init__()\n        self.case = case\n\n"
    )  # fmt: skip
    filled = calls[0].template if same else "_ARGUMENTS[self.case](t)"
    recipe = "" if same else '\n\n\ndef get_init_inputs(case="0"):\n    return [case]'
    return (
        f"import torch\n\n{workloads_setting(rows)}\n\n{table}"
        f"class Model(torch.nn.Module):\n{init}    def forward(self, *t):\n"
        f"        args, kwargs = {filled}\n        return {operator}(*args, **kwargs)\n\n"
        f"{_HELPER}\n\n_INPUTS = {{\n{inputs}}}\n\n\n"
        f'def get_inputs(case="0"):\n    return _INPUTS[case](){recipe}'
    )
