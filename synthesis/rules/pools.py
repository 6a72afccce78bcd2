"""Rules for pooling, and for tensors with a frame around them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from synthesis.errors import LibraryCall, Unsupported
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Size
from synthesis.rules.registry import Calls, rule

MOST_TAPS = 32  # elements of a window, each of which is an operation


@rule("pad")
def _pad(
    d: Decomposer, calls: Calls, x: Node, widths: list[Any], mode: str = "constant", value: float | None = None
) -> Node:
    if mode != "constant":
        raise Unsupported("a frame of copies")
    return _framed(d, x, widths, value or 0.0)


@rule("constant_pad_nd")
def _constant_pad(d: Decomposer, calls: Calls, x: Node, widths: list[Any], value: float = 0.0) -> Node:
    return _framed(d, x, widths, value)


def _framed(d: Decomposer, x: Node, widths: list[Any], value: float) -> Node:
    whole = x.rank - len(widths) // 2
    pairs = list(zip(literals(widths[::2]), literals(widths[1::2]), strict=True))[::-1]
    before, after = ([0] * whole + [pair[side] for pair in pairs] for side in (0, 1))
    return d.copy(x) if not any(widths) else d.build.pad(x, before, after, float(value))


@rule("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(
    d: Decomposer,
    calls: Calls,
    x: Node,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Node:
    taps = _windows(d, calls, x, kernel, stride, padding, dilation, ceil_mode, -math.inf)
    return functools.reduce(functools.partial(d.build.pointwise, "maximum"), taps)


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    d: Decomposer,
    calls: Calls,
    x: Node,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Node:
    """Add up the elements of each window, the frame's included."""
    taps = _windows(d, calls, x, kernel, stride, padding, 1, ceil_mode, 0.0)
    if any(literals(listed(padding, 1))) and not count_include_pad:
        raise Unsupported("averages of parts of windows")
    total = functools.reduce(functools.partial(d.build.pointwise, "add"), taps)
    return d.build.pointwise("mul", total, 1.0 / (divisor_override or len(taps)))


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def _average_of_all(d: Decomposer, calls: Calls, x: Node, sizes: list[Any]) -> Node:
    if any(size != 1 for size in sizes):
        raise Unsupported("averages of parts")
    return d.build.mean(x, list(range(x.rank - len(sizes), x.rank)), keep=True)


def _windows(
    d: Decomposer,
    calls: Calls,
    x: Node,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    filling: float,
) -> list[Node]:
    """Return a view of the padded tensor for each element of a window. Raise Unsupported."""
    b, rank = d.build, int(calls[0].op.split("pool")[1][0])
    widths = literals(listed(kernel, rank))
    steps, frame, spread = (literals(listed(value, rank)) for value in (stride or kernel, padding, dilation))
    lead = x.rank - rank
    windows = list(zip(x.shape[lead:], widths, steps, frame, spread, strict=True))
    if ceil_mode and any(margin + step > (k - 1) * apart + 1 for _, k, step, margin, apart in windows):
        raise Unsupported("a last window that may begin outside")
    if not b.across:
        lengths = [_length(*window, partial=ceil_mode) for window in windows]
        raise LibraryCall("pooling", (*x.shape[:lead], *lengths))
    if ceil_mode:
        raise Unsupported("windows that are not whole")
    if x.dtype != "float32" or math.prod(widths) > MOST_TAPS:
        raise Unsupported("this pooling")
    around = [0] * lead + frame
    framed = b.pad(x, around, around, filling)
    lengths = [  # by the rule, since another expression may agree by chance
        (n - ((k - 1) * apart + 1)) // step + 1
        for n, k, step, apart in zip(framed.shape[lead:], widths, steps, spread, strict=True)
    ]
    if list(d.shape(calls)[lead:]) != lengths:
        raise Unsupported("windows of another number")
    taps = []
    for place in itertools.product(*(range(width) for width in widths)):
        tap = framed
        for axis, (k, step, apart, length) in enumerate(zip(place, steps, spread, lengths, strict=True), lead):
            tap = b.slice(tap, axis, Size.literal(k * apart, b.one), length, step)
        taps.append(tap)
    return taps


def _length(n: Size, k: int, step: int, margin: int, apart: int, *, partial: bool) -> Size:
    """Return the number of windows along a dimension, by the rule: another expression may agree by chance.

    With `partial` the last one may end outside.
    """
    more = 2 * margin - (k - 1) * apart - (0 if step == 1 else 1) + (step - 1 if partial else 0)
    places = n + more if more >= 0 else n - -more
    return places if step == 1 else places // step + 1


def listed(value: Any, rank: int) -> list[Any]:
    """Return a number for each dimension of a window."""
    found = list(value) if isinstance(value, list | tuple) else [value]
    return found * rank if len(found) == 1 else found


def literals(values: list[Any]) -> list[int]:
    """Return numbers that are the same in all workloads. Raise Unsupported."""
    numbers = [
        value.values[0] if isinstance(value, Size) and value.equals(value.values[0]) else value for value in values
    ]
    if not all(isinstance(number, int) for number in numbers):
        raise Unsupported("a window that differs between workloads")
    return numbers
