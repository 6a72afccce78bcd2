"""One self-contained Python file: provenance, the kernel, the reference it was verified against, and a guard."""

from __future__ import annotations

import ast

from evaluator.syntax import parse
from service.exports.base import Export, Format
from service.exports.parts.embed import indented, raw_literal
from service.exports.parts.header import header
from service.exports.parts.native import helper, renamed
from service.exports.parts.template import template
from service.exports.parts.verified import verified_text

_AFTER = """except Exception as _ww_error:  # no compiler, no Triton, another version: the reference answers
    ModelNew, _ww_missing = None, f"the kernel does not run here: {type(_ww_error).__name__}: {_ww_error}"
"""
_AFTER_NATIVE = """if _ww_replaced is not None:  # another kernel's, which gets what it has not
    vars(_ww_replaced).update({**vars(_ww_native), **vars(_ww_replaced)})
    _ww_sys.modules["warpwright_native"] = _ww_replaced
"""
_MADE = "ModelNew = _ww_guard(__name__, UnguardedModelNew, _ww_reference, _WW, _ww_missing)\n"


def build(export: Export) -> str:
    """Return the file's text. It imports torch, and Triton if the kernel does, else only Python's own modules."""
    source, future = hoist_future(export.candidate.source)
    native = helper(source)
    parts = [
        f'"""{header(export)}"""\n',
        *([future] if future else []),
        template("top", export) + (template("top_native", export) if native else ""),
        f"try:  # {'-' * 78} the kernel, as it was verified",
        indented(renamed(source)),
        _AFTER + (_AFTER_NATIVE if native else ""),
        "# The reference that it was verified against. It runs where the kernel may not, and in --check.",
        f"_WW_REFERENCE = {raw_literal(export.problem.source)}",
        template("load", export).replace("@VERIFIED@", verified_text(export)),
        template("guard", export),
        _MADE,
        f"_WW_NATIVE = {raw_literal(native)}\n" if native else "",
        template("check", export),
    ]
    return "\n".join(part for part in parts if part)


def hoist_future(source: str) -> tuple[str, str]:
    """Return the source with `pass` in place of its `from __future__ import`, and these lines, which open a file."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source, ""
    found = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    lines = [line.encode() for line in source.split("\n")]
    for node in reversed(found):  # other statements may share its lines
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines[first : last + 1] = [lines[first][: node.col_offset] + b"pass" + lines[last][node.end_col_offset :]]
    moved = [f"from __future__ import {', '.join(alias.name for alias in node.names)}\n" for node in found]
    return b"\n".join(lines).decode(), "".join(moved)


FORMAT = Format(
    about="A Python file. `python FILE --check` verifies it against the reference that it carries.",
    media_type="text/x-python",
    extension="py",
    build=build,
)
