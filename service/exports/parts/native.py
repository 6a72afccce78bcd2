"""The compile helper that a kernel in C++ or CUDA takes along, and the names inside of a kernel."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

from evaluator.syntax import parse

_PARTS = files("service.exports.parts")
_HELPERS = {
    name: _PARTS.joinpath(f"native_{name.removeprefix('load_')}.py.txt").read_text(encoding="utf-8")
    for name in ("load_cpp", "load_cuda")
}
_JUDGED = ast.parse(files("evaluator.child").joinpath("warpwright_native.py").read_text(encoding="utf-8"))
CPP_FLAGS: list[str] = next(
    ast.literal_eval(node.value)
    for node in _JUDGED.body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_CPP_FLAGS"
)


def helper(source: str) -> str:
    """Return the compile helper's text, with the functions that the kernel names; nothing for a kernel without any."""
    if not uses_helper(source):
        return ""
    wanted = [name for name in _HELPERS if re.search(rf"\b{name}\b", source)] or list(_HELPERS)
    return "\n\n".join(_HELPERS[name].replace("@FLAGS@", " ".join(CPP_FLAGS)) for name in wanted)


def uses_helper(source: str) -> bool:
    return re.search(r"\bwarpwright_native\b", source) is not None


def renamed(source: str) -> str:
    """Return the kernel with `ModelNew` inside of functions, as in super(ModelNew, self), naming the kernel's class."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    bodies = [part for f in functions for part in (f.body if isinstance(f.body, list) else [f.body])]
    places = {
        (node.lineno - 1, node.col_offset)
        for body in bodies
        for node in ast.walk(body)
        if isinstance(node, ast.Name) and node.id == "ModelNew"
    }
    lines = [line.encode() for line in source.split("\n")]
    for line, column in sorted(places, reverse=True):
        lines[line] = lines[line][:column] + b"Unguarded" + lines[line][column:]
    return b"\n".join(lines).decode()
