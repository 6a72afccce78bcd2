"""The code of a problem file from GPU MODE's functions: on any device, with fresh outputs, seeded by the judge."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.formats.base import CannotImport, size_name
from warpwright.formats.gathering import Annotations

_CUDA = re.compile(r"cuda(:\d+)?")
_WAITS = ("torch.cuda.synchronize", "torch.cuda.empty_cache", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
_DEVICE = """
_device = ["cpu"]  # inputs are made on the CPU; the reference runs where its data are


def _here():
    return _device[0]
"""
_ALLOCATE = "{name} = torch.empty_like({name})"


@dataclass(frozen=True, slots=True)
class Code:
    """The imports and the rest. `packed`: the data are a tuple, whose parts are the arguments of the Model."""

    imports: str
    code: str
    packed: bool


def size(key: str) -> str:
    """Return the name that a key of a spec has as a size."""
    return size_name(key)


def write(
    statements: Sequence[ast.stmt], shown: Sequence[Mapping[str, Any]], held_out: Sequence[Mapping[str, Any]]
) -> tuple[Code, list[str]]:
    """Return the code, and the names of the output buffers in the data. Raises CannotImport."""
    functions = {node.name: node for node in statements if isinstance(node, ast.FunctionDef)}
    generate, kernel = functions.get("generate_input"), functions.get("ref_kernel")
    if generate is None or kernel is None:
        raise CannotImport("generate_input and ref_kernel must be plain functions (def) at the top level")
    if len(kernel.args.args) != 1:
        raise CannotImport("ref_kernel takes one argument, the data, in GPU MODE's form")
    buffers, packed = _fresh_outputs(kernel)
    devices = _Devices(dynamic=_names_a_device(kernel, functions))
    plain = [ast.fix_missing_locations(devices.visit(Annotations().visit(node))) for node in statements]
    imports = [node for node in plain if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = dict.fromkeys(["import torch", *(ast.unparse(node) for node in imports)])
    futures = [line for line in lines if line.startswith("from __future__")]
    rest = "\n\n\n".join(ast.unparse(node) for node in plain if not isinstance(node, ast.Import | ast.ImportFrom))
    code = (_DEVICE.strip() + "\n\n\n" if devices.dynamic else "") + f"{rest}\n\n\n"
    code += _model(packed, moves=devices.dynamic)
    code += "\n\n" + _recipe(generate, [*shown, *held_out], packed, moves=devices.dynamic)
    return Code("\n".join(futures + [line for line in lines if line not in futures]) + "\n", code, packed), buffers


def _model(packed: bool, *, moves: bool) -> str:
    taken, given = ("*data", "data") if packed else ("data", "data")
    move = "        _device[0] = str(next(one for one in _leaves(data) if isinstance(one, torch.Tensor)).device)\n"
    return (
        "class Model(torch.nn.Module):\n"
        f"    def forward(self, {taken}):\n{move if moves else ''}        return ref_kernel({given})\n"
    ) + (_LEAVES if moves else "")


_LEAVES = """

def _leaves(data):
    if isinstance(data, dict):
        data = list(data.values())
    return [leaf for one in data for leaf in _leaves(one)] if isinstance(data, (list, tuple)) else [data]
"""


def _recipe(generate: ast.FunctionDef, specs: Sequence[Mapping[str, Any]], packed: bool, *, moves: bool) -> str:
    """Return get_inputs, with the first spec's values as defaults."""
    keys = list(dict.fromkeys(key for spec in specs for key in spec))
    arguments = generate.args
    taken = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    unknown = [key for key in keys if key not in taken and arguments.kwarg is None]
    if unknown:
        raise CannotImport(f"generate_input takes no {unknown[0]!r}, which a spec of task.yml gives it")
    firsts = [*arguments.posonlyargs, *arguments.args][: len(arguments.args) - len(arguments.defaults)]
    bare = [
        one.arg for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    needed = [one.arg for one in firsts] + bare
    absent = [name for name in needed if name not in (*keys, "seed")]
    if absent:
        raise CannotImport(f"generate_input needs {absent[0]!r}, which no spec of task.yml gives")
    sometimes = [key for key in keys if not all(key in spec for spec in specs)]
    defaults = [f"{size(key)}={None if key in sometimes else specs[0][key]!r}" for key in keys]
    given = [f'"{key}": {size(key)}' for key in keys]
    if "seed" in taken:
        given.append('"seed": int(torch.randint(0, 2**31 - 1, ()))')
    lines = [f"def get_inputs({', '.join(defaults)}):"]
    lines += ['    _device[0] = "cpu"'] if moves else []
    lines += [f"    given = {{{', '.join(given)}}}"]
    lines += ["    given = {key: value for key, value in given.items() if value is not None}"] if sometimes else []
    lines += ["    data = generate_input(**given)", f"    return {'list(data)' if packed else '[data]'}"]
    return "\n".join(lines)


def _names_a_device(kernel: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """Return whether the reference, or a function that it calls, names a device itself."""
    waiting, seen = [kernel], {kernel.name}
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CUDA.fullmatch(node.value):
                return True
            if isinstance(node, ast.Attribute) and node.attr == "cuda" and ast.unparse(node) != "torch.cuda":
                return True
            if isinstance(node, ast.Name) and node.id in functions and node.id not in seen:
                seen.add(node.id)
                waiting.append(functions[node.id])
    return False


class _Devices(ast.NodeTransformer):
    """Replaces "cuda" by the CPU, where inputs are made, and leaves out what only a CUDA device understands. Dynamic:
    by the device of the moment, since the reference itself names one."""

    def __init__(self, *, dynamic: bool) -> None:
        self.dynamic = dynamic

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str) and _CUDA.fullmatch(node.value):
            return self._here()
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
            return ast.Call(ast.Attribute(node.func.value, "to", ast.Load()), [self._here()], [])
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in _WAITS:
            return ast.Pass()
        self.generic_visit(node)
        return node

    def _here(self) -> ast.expr:
        return ast.Call(ast.Name("_here", ast.Load()), [], []) if self.dynamic else ast.Constant("cpu")


def _fresh_outputs(kernel: ast.FunctionDef) -> tuple[list[str], bool]:
    """Make the kernel allocate what it writes of its data. Return these names, and whether the data are a tuple."""
    data = kernel.args.args[0].arg
    unpacked: dict[str, int] = {}
    for place, node in enumerate(kernel.body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == data:
            names = [one for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
            unpacked |= {one.id: place for one in names}
    written = list(dict.fromkeys(name for node in ast.walk(kernel) for name in _written(node)))
    if any(name == data for name in written):
        raise CannotImport(
            f"ref_kernel writes into a part of its argument {data!r}: a kernel returns new tensors here. Unpack the "
            f"data by name (a, out = {data}) in a copy of the folder"
        )
    buffers = [name for name in written if name in unpacked]
    for name in reversed(buffers):
        read = sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(kernel))
        allowed = sum(1 for node in ast.walk(kernel) for one in _written(node) if one == name)
        returned = sum(isinstance(one, ast.Return) and ast.unparse(one.value or ast.Constant(None)) == name
                       for one in ast.walk(kernel))  # fmt: skip
        fresh = _ALLOCATE if read - allowed - returned <= 1 else "{name} = {name}.clone()"
        kernel.body[unpacked[name] + 1 : unpacked[name] + 1] = ast.parse(fresh.format(name=name)).body
    shapes = [ast.unparse(target) for node in ast.walk(kernel) if isinstance(node, ast.Assign)
              and isinstance(node.value, ast.Name) and node.value.id == data for target in node.targets
              if isinstance(target, ast.Tuple | ast.List)]  # fmt: skip
    indexed = any(
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == data
        and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
        for node in ast.walk(kernel)
    )  # fmt: skip
    return buffers, bool(shapes) and not indexed


def _written(node: ast.AST) -> list[str]:
    """Return the names of tensors that a node of the tree writes into."""
    owners: list[ast.AST] = []
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        owners.append(node.value)
    elif isinstance(node, ast.Call):
        owners += [word.value for word in node.keywords if word.arg == "out"]
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Attribute) and method.endswith("_") and not method.endswith("__"):
            owners.append(node.func.value)
    elif isinstance(node, ast.AugAssign):
        owners.append(node.target)
    found = []
    for owner in owners:
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        if isinstance(owner, ast.Name):
            found.append(owner.id)
    return found
