"""What a kernel's file needs before and after the kernel: stubs for what is missing, and the compile helper."""

from __future__ import annotations

import ast
import re
from importlib.resources import files

from service.exports.parts.embed import raw_literal

_PARTS = files("service.exports.parts")
_NATIVE = files("evaluator.child").joinpath("warpwright_native.py").read_text(encoding="utf-8")
_BEFORE, _BEFORE_NATIVE, _BEFORE_TRITON = (
    _PARTS.joinpath(f"{name}.py.txt").read_text(encoding="utf-8")
    for name in ("before", "before_native", "before_triton")
)
_UNSET = 'os.environ.get("WARPWRIGHT_NATIVE_CACHE", "")'
_KEPT = 'os.environ.get("WARPWRIGHT_NATIVE_CACHE", os.path.expanduser("~/.cache/warpwright"))'


def preamble(source: str) -> str:
    """Return the code that stands before the kernel, so that a missing compiler or Triton stops no import."""
    text = _BEFORE
    if uses_helper(source):
        text += _BEFORE_NATIVE
    if modules := _triton_modules(source):
        text += _BEFORE_TRITON.replace("@MODULES@", repr(modules))
    return text


def helper(source: str) -> str:
    """Return an assignment of the functions of the compile helper that the kernel needs, or nothing."""
    if not uses_helper(source):
        return ""
    assert _UNSET in _NATIVE
    text = _needed(_NATIVE, set(re.findall(r"\w+", source)) & {"load_cpp", "load_cuda"} or {"load_cpp", "load_cuda"})
    about = "# The compile helper that the kernel imports as `warpwright_native`. It keeps what it builds in\n"
    about += "# WARPWRIGHT_NATIVE_CACHE, else in ~/.cache/warpwright.\n"
    return f"_WW_NATIVE = {raw_literal(about + text.replace(_UNSET, _KEPT))}\n"


def uses_helper(source: str) -> bool:
    return re.search(r"\bwarpwright_native\b", source) is not None


def renamed(source: str) -> str:
    """Return the kernel with `ModelNew` inside of functions, as in super(ModelNew, self), naming the kernel's class."""
    try:
        tree = ast.parse(source)
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


def _triton_modules(source: str) -> list[str]:
    """Return the modules of Triton that the kernel imports anywhere, and their parents."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    parts = [name.split(".") for name in named if name.split(".")[0] == "triton"]
    return sorted({".".join(part[: end + 1]) for part in parts for end in range(len(part))})


def _needed(text: str, wanted: set[str]) -> str:
    """Return the imports and top-level definitions that these names need, without docstrings and comments between."""
    tree, lines = ast.parse(text), text.splitlines()
    defined = {name: node for node in tree.body for name in _names(node)}
    found, waiting = set(), [name for name in wanted if name in defined]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [n.id for n in ast.walk(defined[name]) if isinstance(n, ast.Name) and n.id in defined]
    kept = []
    for node in tree.body:
        names = _names(node)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if future or names & found:
            separate = isinstance(node, ast.FunctionDef | ast.ClassDef)
            kept.append(("\n\n" if separate else "") + _without_docstrings(node, lines))
    return "\n".join(kept) + "\n"


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()


def _without_docstrings(node: ast.stmt, lines: list[str]) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    dropped: set[int] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one) and len(one.body) > 1:
            text = one.body[0]
            dropped |= set(range(text.lineno - 1, text.end_lineno or text.lineno))
            dropped |= {text.end_lineno or 0} if isinstance(one, ast.ClassDef) else set()
    return "\n".join(lines[n] for n in range(first, node.end_lineno or node.lineno) if n not in dropped)
