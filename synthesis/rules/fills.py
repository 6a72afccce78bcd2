"""Rules for tensors made from nothing, and for triangles."""

from __future__ import annotations

from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import FLOATS, Node
from synthesis.rules.registry import Calls, rule


@rule(
    "ones",
    "zeros",
    "full",
    "ones_like",
    "zeros_like",
    "full_like",
    "scalar_tensor",
    "new_ones",
    "new_zeros",
    "new_full",
)
def _fill(d: Decomposer, calls: Calls, first: Any, value: Any = None, **named: Any) -> Node:
    op, dtype = calls[0].op, d.dtype(calls)
    if "scalar_tensor" in op:
        value = first
    elif "full" not in op:
        value = 1 if "ones" in op else 0
    if not isinstance(value, bool | int | float):
        raise Unsupported("a fill value that is a tensor")
    typed = bool(value) if dtype == "bool" else float(value) if dtype in FLOATS else value
    constant = d.build.constant(typed)
    constant.dtype = dtype
    d.build.ranges.demand(constant)
    return d.build.expand(constant, d.shape(calls))


@rule("arange")
def _arange(d: Decomposer, calls: Calls, *bounds: Any, **named: Any) -> Node:
    start, step = (bounds[0] if len(bounds) > 1 else 0), (bounds[2] if len(bounds) > 2 else 1)
    b, dtype = d.build, d.dtype(calls)
    result = b.iota(d.shape(calls), 0)
    if step != 1:
        result = b.pointwise("mul", result, step)
    if start != 0:
        result = b.pointwise("add", result, start)
    return result if dtype == "int64" else b.pointwise("cast", result, dtype=dtype)


@rule("tril", "triu")
def _triangle(d: Decomposer, calls: Calls, x: Node, diagonal: int = 0) -> Node:
    b = d.build
    distance = b.pointwise("sub", b.iota(x.shape, x.rank - 1), b.iota(x.shape, x.rank - 2))
    kept = b.pointwise("le" if "tril" in calls[0].op else "ge", distance, diagonal)
    if x.dtype == "bool":
        return b.pointwise("and", x, kept)
    return b.pointwise("where", kept, x, 0.0 if x.dtype in FLOATS else 0, dtype=x.dtype)
