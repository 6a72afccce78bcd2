"""Rules for losses."""

from __future__ import annotations

from functools import partial

from synthesis.errors import Unsupported
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Node
from synthesis.rules.pointwise import log_sigmoid
from synthesis.rules.registry import Calls, rule
from synthesis.rules.views import take


def _total(d: Decomposer, terms: Node, reduction: int, dtype: str) -> Node:
    """Return the terms themselves (0), their mean (1) or their sum (2)."""
    terms.dtype, dims = dtype, list(range(terms.rank))
    if reduction == 0:
        return terms
    return (d.build.mean if reduction == 1 else partial(d.build.reduce, "sum"))(terms, dims, keep=False)


@rule("mse_loss", "l1_loss")
def _loss(d: Decomposer, calls: Calls, x: Node, y: Node, reduction: int = 1) -> Node:
    b = d.build
    difference = b.pointwise("sub", x, y)
    terms = b.pointwise("abs", difference) if "l1" in calls[0].op else b.pointwise("mul", difference, difference)
    return _total(d, terms, reduction, d.dtype(calls))


@rule("smooth_l1_loss", "huber_loss")
def _huber(d: Decomposer, calls: Calls, x: Node, y: Node, reduction: int = 1, bound: float = 1.0) -> Node:
    """Squares up to `bound`, then lines; the smooth loss is the other one divided by `bound`."""
    if bound <= 0:
        raise Unsupported("a loss without squares")
    b, smooth = d.build, "smooth" in calls[0].op
    size = b.pointwise("abs", b.pointwise("sub", x, y))
    square = b.pointwise("mul", b.pointwise("mul", size, size), 0.5 / bound if smooth else 0.5)
    line = b.pointwise("sub", size, 0.5 * bound)
    line = line if smooth else b.pointwise("mul", line, bound)
    terms = b.pointwise("where", b.pointwise("lt", size, bound), square, line)
    return _total(d, terms, reduction, d.dtype(calls))


@rule("binary_cross_entropy")
def _binary_cross_entropy(
    d: Decomposer, calls: Calls, x: Node, y: Node, weight: Node | None = None, reduction: int = 1
) -> Node:
    b = d.build
    hit, miss = b.pointwise("log", x), b.pointwise("log1p", b.pointwise("neg", x))
    hit, miss = b.pointwise("maximum", hit, -100.0), b.pointwise("maximum", miss, -100.0)  # as torch bounds them
    missed = b.pointwise("mul", b.pointwise("sub", y, 1.0), miss)
    terms = b.pointwise("sub", missed, b.pointwise("mul", y, hit))
    return _total(d, terms if weight is None else b.pointwise("mul", terms, weight), reduction, d.dtype(calls))


@rule("binary_cross_entropy_with_logits")
def _of_logits(
    d: Decomposer,
    calls: Calls,
    x: Node,
    y: Node,
    weight: Node | None = None,
    positive: Node | None = None,
    reduction: int = 1,
) -> Node:
    b, dtype = d.build, d.dtype(calls)
    soft = log_sigmoid(d, x, dtype)
    if positive is not None:
        factor = b.pointwise("add", b.pointwise("mul", b.pointwise("sub", positive, 1.0), y), 1.0)
        soft = b.pointwise("mul", factor, soft)
    terms = b.pointwise("sub", b.pointwise("mul", b.pointwise("sub", 1.0, y), x), soft)
    return _total(d, terms if weight is None else b.pointwise("mul", terms, weight), reduction, dtype)


@rule("kl_div")
def _divergence(d: Decomposer, calls: Calls, x: Node, y: Node, reduction: int = 1, log_target: bool = False) -> Node:
    b = d.build
    if log_target:
        terms = b.pointwise("mul", b.pointwise("exp", y), b.pointwise("sub", y, x))
    else:
        own = b.pointwise("where", b.pointwise("eq", y, 0.0), 0.0, b.pointwise("mul", y, b.pointwise("log", y)))
        terms = b.pointwise("sub", own, b.pointwise("mul", y, x))
    return _total(d, terms, reduction, d.dtype(calls))


@rule("cosine_similarity")
def _cosine(d: Decomposer, calls: Calls, x: Node, y: Node, dimension: int = 1, eps: float = 1e-8) -> Node:
    b = d.build
    product, *squares = (
        b.reduce("sum", b.pointwise("mul", one, other), [dimension], keep=False)
        for one, other in ((x, y), (x, x), (y, y))
    )
    for square in squares:
        product = b.pointwise("div", product, b.pointwise("maximum", b.pointwise("sqrt", square), eps))
    product.dtype = d.dtype(calls)
    return product


@rule("pairwise_distance")
def _pairwise(
    d: Decomposer, calls: Calls, x: Node, y: Node, order: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Node:
    return _distance(d, x, y, order, eps, d.dtype(calls), keep=keepdim)


def _distance(d: Decomposer, x: Node, y: Node, order: float, eps: float, dtype: str, *, keep: bool = False) -> Node:
    b = d.build
    apart = b.pointwise("add", b.pointwise("sub", x, y), eps)
    if order not in (1, 2):
        raise Unsupported("this norm")
    terms = b.pointwise("abs", apart) if order == 1 else b.pointwise("mul", apart, apart)
    total = b.reduce("sum", terms, [-1], keep=keep)
    return total if order == 1 else b.pointwise("sqrt", total, dtype=dtype)


@rule("triplet_margin_loss")
def _triplet(
    d: Decomposer,
    calls: Calls,
    anchor: Node,
    positive: Node,
    negative: Node,
    margin: float = 1.0,
    order: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Node:
    b, dtype = d.build, d.dtype(calls)
    near, far = (_distance(d, anchor, other, order, eps, dtype) for other in (positive, negative))
    if swap:
        far = b.pointwise("minimum", far, _distance(d, positive, negative, order, eps, dtype))
    terms = b.pointwise("maximum", b.pointwise("sub", b.pointwise("add", near, margin), far), 0.0)
    return _total(d, terms, reduction, dtype)


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
