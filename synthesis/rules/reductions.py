"""Rules for reductions, softmax and normalisation."""

from __future__ import annotations

from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.decompose import MISSING, Decomposer
from synthesis.graph.nodes import Node, is_in_memory
from synthesis.graph.sizes import Size
from synthesis.graph.split import are_few_and_long
from synthesis.rules.registry import Calls, rule


def _dims(x: Node, dims: Any) -> list[int]:
    if dims is None or dims == []:
        return list(range(x.rank))
    return [dims] if isinstance(dims, int) else list(dims)


@rule("sum", "mean", "amax", "amin")
def _reduction(
    d: Decomposer, calls: Calls, x: Node, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Node:
    op, wanted = calls[0].op.split(".")[1], _dims(x, dims)
    if op == "mean":
        result = d.build.mean(x, wanted, keep=keepdim)
    else:
        result = d.build.reduce({"sum": "sum", "amax": "max", "amin": "min"}[op], x, wanted, keep=keepdim)
    wanted_dtype = d.dtype(calls)
    if result.kind == "view" and result.dtype != wanted_dtype:
        return d.build.pointwise("cast", result, dtype=wanted_dtype)
    result.dtype = wanted_dtype
    return result


@rule("max", "min")
def _extremum(d: Decomposer, calls: Calls, x: Node, other: Any = None, keepdim: bool = False) -> Any:
    fn = calls[0].op.split(".")[1]
    if isinstance(other, Node):
        return d.build.pointwise(fn + "imum", x, other, dtype=d.dtype(calls))
    result = d.build.reduce(fn, x, _dims(x, other), keep=keepdim)
    if other is None:
        return result
    return [result, _place(d, f"arg{fn}", x, other, keepdim) if d.item_is_used(calls[0], 1) else MISSING]


@rule("argmax", "argmin")
def _place_of_extremum(
    d: Decomposer, calls: Calls, x: Node, dimension: int | None = None, keepdim: bool = False
) -> Node:
    return _place(d, calls[0].op.split(".")[1], x, dimension, keepdim)


def _place(d: Decomposer, fn: str, x: Node, dimension: int | None, keepdim: bool) -> Node:
    """Return the first place of an extremum along a dimension, or in the whole tensor. Raise Unsupported."""
    if not d.build.across or x.dtype != "float32" or x.rank == 0:
        raise Unsupported("the places of extrema")
    return d.build.reduce(fn, x, _dims(x, dimension), keep=keepdim)


@rule("var", "std", "var_mean")
def _variance(
    d: Decomposer, calls: Calls, x: Node, dims: Any = None, unbiased: bool = True, keepdim: bool = False, **named: Any
) -> Any:
    op, b = calls[0].op, d.build
    wanted = _dims(x, None if isinstance(dims, bool) else dims)
    correction = float(unbiased if not isinstance(dims, bool) else dims)
    if "correction" in op:
        correction = 1.0 if named.get("correction") is None else float(named["correction"])
    keep = bool(named.get("keepdim", keepdim))
    variance = b.variance(x, wanted, correction, keep=keep)
    if "std" in op:
        return b.pointwise("sqrt", variance, dtype=d.dtype(calls))
    return [variance, b.mean(x, wanted, keep=keep)] if "var_mean" in op else variance


@rule("linalg_vector_norm", "norm")
def _norm(
    d: Decomposer, calls: Calls, x: Node, order: Any = 2, dims: Any = None, keepdim: bool = False, **named: Any
) -> Node:
    if order not in (1, 2, None) or named.get("dtype") is not None:
        raise Unsupported("this norm")
    terms = d.build.pointwise("abs", x) if order == 1 else d.build.pointwise("mul", x, x)
    total = d.build.reduce("sum", terms, _dims(x, dims), keep=keepdim)
    return total if order == 1 else d.build.pointwise("sqrt", total, dtype=d.dtype(calls))


@rule("softmax", "_softmax", "log_softmax", "_log_softmax")
def _softmax(d: Decomposer, calls: Calls, x: Node, dimension: int, rest: Any = None) -> Node:
    return d.build.softmax(x, dimension, log="log" in calls[0].op, dtype=d.dtype(calls))


@rule("logsumexp")
def _logsumexp(d: Decomposer, calls: Calls, x: Node, dims: Any, keepdim: bool = False) -> Node:
    return d.build.logsumexp(x, _dims(x, dims), keep=keepdim)


@rule("layer_norm")
def _layer_norm(
    d: Decomposer,
    calls: Calls,
    x: Node,
    shape: list[Any],
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> Node:
    """Normalise rows; few long ones are a building block in Triton."""
    lead, row = x.shape[: -len(shape)], x.shape[-len(shape) :]
    if not d.build.across and are_few_and_long(lead, row, d.build.one) and is_in_memory(x, reshaped=True):
        raise Unsupported("a layer normalisation of few long rows")
    return d.build.norm_layer(x, len(shape), weight, bias, eps, centre=True, dtype=d.dtype(calls))[0]


@rule("native_layer_norm")
def _native_layer_norm(
    d: Decomposer, calls: Calls, x: Node, shape: list[Any], weight: Node | None, bias: Node | None, eps: float
) -> list[Node]:
    return list(d.build.norm_layer(x, len(shape), weight, bias, eps, centre=True, dtype=d.dtype(calls)))


@rule("rms_norm")
def _rms_norm(
    d: Decomposer, calls: Calls, x: Node, shape: list[Any], weight: Node | None = None, eps: float | None = None
) -> Node:
    return d.build.norm_layer(
        x, len(shape), weight, None, 2.0**-23 if eps is None else eps, centre=False, dtype=d.dtype(calls)
    )[0]


@rule("batch_norm", "_native_batch_norm_legit_no_training")
def _batch_norm(
    d: Decomposer,
    calls: Calls,
    x: Node,
    weight: Node | None,
    bias: Node | None,
    mean: Node,
    variance: Node,
    train: bool,
    momentum: float,
    eps: float,
    cudnn: bool = True,
) -> Node:
    if train:
        raise Unsupported("batch normalisation in training")
    b = d.build
    column = [x.shape[1]] + [b.one] * (x.rank - 2)
    scale = b.pointwise("rsqrt", b.pointwise("add", b.reshape(variance, column), eps))
    result = b.pointwise("mul", b.pointwise("sub", x, b.reshape(mean, column)), scale)
    if weight is not None:
        result = b.pointwise("mul", result, b.reshape(weight, column))
    return result if bias is None else b.pointwise("add", result, b.reshape(bias, column), dtype=d.dtype(calls))


@rule("group_norm")
def _group_norm(
    d: Decomposer,
    calls: Calls,
    x: Node,
    groups: int,
    weight: Node | None = None,
    bias: Node | None = None,
    eps: float = 1e-5,
    cudnn: bool = True,
) -> Node:
    """Normalise the groups of two-dimensional inputs, which are rows.

    Those of images are rows with a run for each channel in C++, and a building block in Triton.
    """
    images = x.rank > 2 and any(not size.equals(1) for size in x.shape[2:])
    if (images and not d.build.across) or not isinstance(groups, int):
        raise Unsupported("a group normalisation of images")
    b = d.build
    count = Size.literal(groups, b.one)
    if not x.shape[1].divisible(count):
        raise Unsupported("groups of unequal length")
    rows = b.reshape(x, (x.shape[0], count, x.shape[1] // count, *(x.shape[2:] if images else ())))
    column = (count, x.shape[1] // count, *(b.one,) * (rows.rank - 3))
    result = b.norm_layer(rows, rows.rank - 2, None, None, eps, centre=True, dtype=d.dtype(calls))[0]
    if weight is not None:
        result = b.pointwise("mul", result, b.reshape(weight, column))
    if bias is not None:
        result = b.pointwise("add", result, b.reshape(bias, column), dtype=d.dtype(calls))
    return b.reshape(result, x.shape)


@rule("instance_norm")
def _instance_norm(
    d: Decomposer,
    calls: Calls,
    x: Node,
    weight: Node | None,
    bias: Node | None,
    mean: Node | None,
    variance: Node | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn: bool = True,
) -> Node:
    """Normalise each channel of each image by its own statistics; running ones are left to the library."""
    if not use_input_stats or mean is not None or variance is not None or x.rank < 3:
        raise Unsupported("an instance normalisation with running statistics")
    b = d.build
    rank = x.rank - 2
    result = b.norm_layer(x, rank, None, None, eps, centre=True, dtype=d.dtype(calls))[0]
    column = (x.shape[1], *(b.one,) * rank)
    if weight is not None:
        result = b.pointwise("mul", result, b.reshape(weight, column), dtype=d.dtype(calls))
    if bias is not None:
        result = b.pointwise("add", result, b.reshape(bias, column), dtype=d.dtype(calls))
    return result
