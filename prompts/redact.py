"""Removal of held-out Workloads from the reference's text, so that no model or agent sees them."""

from __future__ import annotations

import ast
import re

from evaluator.syntax import parse
from evaluator.types import DeviceKind

_ORIGIN = re.compile(r"^[ \t]*# warpwright origin:.*\n?", re.MULTILINE)
"""The comment of an imported problem file, which lists every workload with its sizes."""


def without_held_out(source: str, kind: DeviceKind | None = None) -> str:
    """Return the reference without its origin, the held-out entries of its WORKLOADS literal and comments inside it.

    With `kind`, entries for other devices are removed, too. A source without all of these is returned unchanged.
    """
    source = _ORIGIN.sub("", source)
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return source
    lines = source.encode().splitlines(keepends=True)
    for node in reversed(tree.body):
        value = _workloads(node)
        if value is None or not any(_is_hidden(item, kind) for item in value.elts):
            continue
        kept = [f"    {ast.unparse(item)},\n" for item in value.elts if not _is_hidden(item, kind)]
        text = f"WORKLOADS = [\n{''.join(kept)}]\n".encode()
        end = node.end_lineno or node.lineno
        lines[node.lineno - 1 : end] = [text]
    return b"".join(lines).decode()


def _workloads(node: ast.stmt) -> ast.List | ast.Tuple | None:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    named = any(isinstance(target, ast.Name) and target.id == "WORKLOADS" for target in targets)
    value = getattr(node, "value", None)
    return value if named and isinstance(value, ast.List | ast.Tuple) else None


def _is_hidden(item: ast.expr, kind: DeviceKind | None) -> bool:
    return _is_held_out(item) or (kind is not None and _device(item) not in (None, kind.value))


def _device(item: ast.expr) -> object:
    """Return the device that an entry names, or None."""
    if not isinstance(item, ast.Dict):
        return None
    pairs = zip(item.keys, item.values, strict=True)
    named = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "device"]
    return named[0].value if named and isinstance(named[0], ast.Constant) else None


def _is_held_out(item: ast.expr) -> bool:
    if not isinstance(item, ast.Dict):
        return False
    return any(
        isinstance(key, ast.Constant) and key.value == "held_out" and not _is_false(value)
        for key, value in zip(item.keys, item.values, strict=True)
    )


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
