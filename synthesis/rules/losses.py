"""Rules for losses."""

from __future__ import annotations

from synthesis.errors import Unsupported
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Node
from synthesis.rules.registry import Calls, rule
from synthesis.rules.views import take


@rule("mse_loss", "l1_loss")
def _loss(d: Decomposer, calls: Calls, x: Node, y: Node, reduction: int = 1) -> Node:
    b = d.build
    difference = b.pointwise("sub", x, y)
    terms = b.pointwise("abs", difference) if "l1" in calls[0].op else b.pointwise("mul", difference, difference)
    dims = list(range(terms.rank))
    if reduction == 0:
        return terms
    return b.mean(terms, dims, keep=False) if reduction == 1 else b.reduce("sum", terms, dims, keep=False)


@rule("cross_entropy_loss")
def _cross_entropy(
    d: Decomposer,
    calls: Calls,
    x: Node,
    target: Node,
    weight: Node | None = None,
    reduction: int = 1,
    ignore: int = -100,
    smoothing: float = 0.0,
) -> Node:
    if weight is not None or smoothing or x.rank != 2 or target.dtype not in ("int64", "int32"):
        raise Unsupported("weighted, smoothed or many-dimensional cross entropy")
    b = d.build
    chosen = take(d, x, b.reshape(target, (x.shape[0], b.one)), 1)
    losses = b.pointwise("sub", b.logsumexp(x, [1], keep=False), b.reshape(chosen, (x.shape[0],)))
    counted = b.pointwise("ne", target, ignore)
    losses = b.pointwise("where", counted, losses, 0.0, dtype=d.dtype(calls))
    if reduction == 0:
        return losses
    total = b.reduce("sum", losses, [0], keep=False)
    if reduction == 2:
        return total
    return b.pointwise(
        "div",
        total,
        b.reduce("sum", b.pointwise("cast", counted, dtype="float32"), [0], keep=False),
        dtype=d.dtype(calls),
    )
