"""Rules for scans along a dimension, and for tensors that are turned round."""

from __future__ import annotations

from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.decompose import MISSING, Decomposer
from synthesis.graph.nodes import BACK, Node
from synthesis.rules.registry import Calls, rule

SCANS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}


@rule("cumsum", "cumprod")
def _scan(d: Decomposer, calls: Calls, x: Node, dimension: int, dtype: Any = None) -> Node:
    if d.dtype(calls) != x.dtype:
        raise Unsupported("a scan in another dtype")
    return d.build.scan(SCANS[calls[0].op.split(".")[1]], x, dimension)


@rule("cummax", "cummin")
def _extremum(d: Decomposer, calls: Calls, x: Node, dimension: int) -> list[Any]:
    if d.item_is_used(calls[0], 1):
        raise Unsupported("the places of extrema so far")
    return [d.build.scan(SCANS[calls[0].op.split(".")[1]], x, dimension), MISSING]


@rule("flip")
def _flip(d: Decomposer, calls: Calls, x: Node, dims: list[int]) -> Node:
    if not d.build.across or not dims:
        raise Unsupported("a tensor that is turned round")
    d.build.ranges.demand(x)
    for dimension in dims:
        x = _turned_round(d, x, dimension % x.rank)
    return x


def _turned_round(d: Decomposer, x: Node, dimension: int) -> Node:
    """Return `x` from its end along a dimension. Of two turns nothing is left; a scan begins at its other end."""
    b, below = d.build, x.inputs[0] if x.inputs else x
    if x.shape[dimension].equals(1):
        return x
    if x.kind == "view" and x.fn == "permute":
        return b.permute(_turned_round(d, below, x.data[dimension]), x.data)
    if x.kind == "scan" and dimension == x.rank - 1:
        fn = x.fn.removeprefix(BACK) if x.fn.startswith(BACK) else BACK + x.fn
        source = _turned_round(d, below, dimension)
        return Node(b.name("scan"), "scan", fn, (source,), x.shape, x.dtype, x.data, origin=x.origin)
    if x.kind == "pointwise" and x.fn == "cast" and x.dtype == below.dtype and below.kind == "view":
        if below.fn == "slice" and below.data == (dimension, x.shape[dimension] - 1, -1):
            return d.copy(below.inputs[0])
        if below.fn == "permute":
            return b.pointwise("cast", _turned_round(d, below, dimension), dtype=x.dtype)
    turned = b.slice(x, dimension, x.shape[dimension] - 1, x.shape[dimension], -1)
    return b.pointwise("cast", turned, dtype=x.dtype)  # a tensor of its own
