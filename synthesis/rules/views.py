"""Rules for views, joins of tensors, and gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Node
from synthesis.rules.registry import Calls, rule


@rule("gather")
def _gather(d: Decomposer, calls: Calls, x: Node, dimension: int, index: Node, sparse_grad: bool = False) -> Node:
    if any(a != b for i, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if i != dimension % x.rank):
        raise Unsupported("a gather with a smaller index")
    return take(d, x, index, dimension)


def take(d: Decomposer, x: Node, index: Node, dimension: int) -> Node:
    """Return the elements of `x` that `index` selects along a dimension. Raise Unsupported."""
    d.build.ranges.demand(x)
    return Node(
        d.build.name("gathered"), "gather", "", (x, index), index.shape, x.dtype, dimension % x.rank, origin="gather"
    )


@rule("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "view_as", "reshape_as")
def _reshape(d: Decomposer, calls: Calls, x: Node, *rest: Any) -> Node:
    if "dtype" in calls[0].op:
        raise Unsupported("a view as another dtype")
    return d.build.reshape(x, d.shape(calls))


@rule("expand", "expand_as", "broadcast_to")
def _expand(d: Decomposer, calls: Calls, x: Node, *rest: Any, implicit: bool = False) -> Node:
    return d.build.expand(x, d.shape(calls))


@rule("broadcast_tensors")
def _broadcast(d: Decomposer, calls: Calls, tensors: list[Node]) -> list[Node]:
    return [d.build.expand(x, d.shape(calls, item)) for item, x in enumerate(tensors)]


@rule("repeat_interleave")
def _repeat_interleave(
    d: Decomposer, calls: Calls, x: Node, repeats: Any, dimension: int | None = None, **named: Any
) -> Node:
    """Repeat each element along a dimension. The count is that of the sizes, since a literal that agrees on the
    workloads at hand (heads // kv_heads) may be another elsewhere."""
    if isinstance(repeats, Node) or dimension is None:
        raise Unsupported("repeats that are a tensor")
    dimension %= x.rank
    shape = d.shape(calls)
    count = d.quotient(shape[dimension], x.shape[dimension], repeats)
    apart = (*x.shape[: dimension + 1], d.build.one, *x.shape[dimension + 1 :])
    repeated = (*x.shape[: dimension + 1], count, *x.shape[dimension + 1 :])
    return d.build.reshape(d.build.expand(d.build.reshape(x, apart), repeated), shape)


@rule("permute")
def _permute(d: Decomposer, calls: Calls, x: Node, order: Sequence[int]) -> Node:
    return d.build.permute(x, order)


@rule("numpy_T")
def _reverse(d: Decomposer, calls: Calls, x: Node) -> Node:
    return d.build.permute(x, range(x.rank - 1, -1, -1))


@rule("transpose", "swapaxes", "t", "mT")
def _transpose(d: Decomposer, calls: Calls, x: Node, first: int = -2, second: int = -1) -> Node:
    if x.rank < 2:
        return x
    order = list(range(x.rank))
    order[first], order[second] = order[second], order[first]
    return d.build.permute(x, order)


@rule("slice", "narrow")
def _slice(
    d: Decomposer, calls: Calls, x: Node, dimension: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Node:
    return d.build.slice(x, dimension, d.start(calls, 2, x.shape[dimension]), d.shape(calls)[dimension], step)


@rule("select")
def _select(d: Decomposer, calls: Calls, x: Node, dimension: int, index: Any) -> Node:
    part = d.build.slice(x, dimension, d.start(calls, 2, x.shape[dimension]), d.build.one)
    return d.build.reshape(part, d.shape(calls))


@rule("chunk", "split", "split_with_sizes", "tensor_split")
def _split(d: Decomposer, calls: Calls, x: Node, sizes: Any, dimension: int = 0) -> list[Node]:
    parts, start = [], d.build.one - 1
    for item in range(len(calls[0].values)):
        length = d.shape(calls, item)[dimension]
        parts.append(d.build.slice(x, dimension, start, length))
        start = start + length
    return parts


@rule("unbind")
def _unbind(d: Decomposer, calls: Calls, x: Node, dimension: int = 0) -> list[Node]:
    zero = d.build.one - 1
    parts = [d.build.slice(x, dimension, zero + i, d.build.one) for i in range(len(calls[0].values))]
    return [d.build.reshape(part, d.shape(calls, i)) for i, part in enumerate(parts)]


@rule("cat", "concat")
def _cat(d: Decomposer, calls: Calls, parts: list[Node], dimension: int = 0) -> Node:
    if any(p.rank != parts[0].rank or p.dtype != parts[0].dtype for p in parts):
        raise Unsupported("a cat of unlike tensors")
    return d.build.cat(parts, dimension)


@rule("stack")
def _stack(d: Decomposer, calls: Calls, parts: list[Node], dimension: int = 0) -> Node:
    shape = d.shape(calls)
    dimension %= len(shape)
    single = (*shape[:dimension], d.build.one, *shape[dimension + 1 :])
    return d.build.cat([d.build.reshape(p, single) for p in parts], dimension)
