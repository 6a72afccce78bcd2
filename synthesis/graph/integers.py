"""Bound the whole numbers that a tensor may hold.

Kernels in C++ compute with 32 bits, in as many lanes as floats; those in Triton load tensors as 64 bits, but have
positions of 32. Every kernel reduces in float32. What may be larger is refused, so that it stays a library call; so is
what wraps around in fewer bits. Indices are taken as they are.
"""

from __future__ import annotations

import math

from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, PLACES, QUANTISED, Node
from synthesis.graph.sizes import Size

Range = tuple[float, float]  # least and greatest
ANY: Range = (-math.inf, math.inf)
OF_TYPE: dict[str, Range] = {
    "bool": (0, 1),
    "uint8": (0, 255),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
}
LANE = OF_TYPE["int32"]
EXACT = 2**24  # float32 has every whole number up to here
ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")


class Ranges:
    """Finds the ranges of integer and boolean nodes, each once. With `wide`, kernels load tensors as 64 bits."""

    def __init__(self, *, wide: bool = False) -> None:
        self.wide = wide
        self._known: dict[Node, Range] = {}

    def of(self, node: Node) -> Range:
        if node not in self._known:
            limits, found = OF_TYPE.get(node.dtype, ANY), _DERIVED.get(node.kind, _unknown)(self, node)
            self._known[node] = found if _within(found, limits) else limits
        return self._known[node]

    def _held(self, found: Range) -> bool:
        """Return whether kernels have the bits. A range without end is that of a loaded tensor."""
        return _within(found, LANE) or (self.wide and math.inf in (-found[0], found[1]))

    def demand(self, node: Node) -> None:
        """Raise Unsupported for a tensor that kernels cannot hold."""
        if not _is_float(node) and not self._held(self.of(node)):
            raise Unsupported("whole numbers that may need 64 bits")

    def check(self, node: Node) -> None:
        """Raise Unsupported for a pointwise node if kernels would get its numbers, or those of its operands, wrong."""
        operands = [i for i in node.inputs if not _is_float(i)]
        if _is_float(node) or any(_is_float(i) and i.kind != "constant" for i in node.inputs):
            operands = [i for i in operands if i.kind != "constant"]  # becomes a float as it is written
        elif node.fn in ORDERED and len({i.kind == "constant" or self._held(self.of(i)) for i in operands}) == 2:
            operands = [i for i in operands if i.kind == "constant"]  # labels and indices beside a small number
        for operand in operands:
            self.demand(operand)
        if _is_float(node) or node.dtype == "int32":
            return
        found = _pointwise(self, node)
        if not (_within(found, OF_TYPE[node.dtype]) if node.dtype in OF_TYPE else self._held(found)):
            raise Unsupported(f"{node.fn} of whole numbers that may not fit")

    def check_reduction(self, fn: str, x: Node, count: Size) -> None:
        """Raise Unsupported where float32 cannot hold what a reduction of `count` numbers adds up to."""
        low, high = self.of(x)
        if not _is_float(x) and max(-low, high) * (max(1, *count.values) if fn == "sum" else 1) > EXACT:
            raise Unsupported(f"a {fn} of whole numbers that float32 does not hold")


def _is_float(node: Node) -> bool:
    return node.dtype in FLOATS or node.dtype in QUANTISED


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _union(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _unknown(ranges: Ranges, node: Node) -> Range:
    return ANY


def _first(ranges: Ranges, node: Node) -> Range:
    return ranges.of(node.inputs[0])


def _constant(ranges: Ranges, node: Node) -> Range:
    if isinstance(node.data, Size):
        return min(node.data.values), max(node.data.values)
    return (node.data, node.data) if isinstance(node.data, int) else ANY


def _iota(ranges: Ranges, node: Node) -> Range:
    return 0, max(node.shape[node.data].values)


def _joined(ranges: Ranges, node: Node) -> Range:
    return _union(*(ranges.of(part) for part in node.inputs))


def _reduced(ranges: Ranges, node: Node) -> Range:
    """Return what was checked when it was made."""
    if node.fn in PLACES:
        return 0, max(math.prod(sizes) for sizes in zip(*(s.values for s in node.inputs[0].shape), strict=True))
    return (-EXACT, EXACT) if node.fn == "sum" else ranges.of(node.inputs[0])


def _pointwise(ranges: Ranges, node: Node) -> Range:
    if node.dtype == "bool":
        return OF_TYPE["bool"]
    if any(_is_float(i) for i in node.inputs):
        return OF_TYPE.get(node.dtype, ANY)  # a cast: what does not fit is undefined in torch, too
    found = [ranges.of(i) for i in node.inputs]
    (low, high), (least, greatest) = found[0], found[-1]
    if node.fn == "cast":
        return low, high
    if node.fn == "where":
        return _union(*found[1:])
    if node.fn in ("maximum", "minimum"):
        return _union(*found)
    if node.fn == "bitand":
        bounds = [top for bottom, top in found if bottom >= 0]
        return (0, min(bounds)) if bounds else ANY
    if node.fn == "shr":
        return min(low, 0), max(high, 0)
    if node.fn in ("neg", "abs"):
        size = max(-low, high)
        return (-high, -low) if node.fn == "neg" else (0, size)
    if node.fn == "add":
        return low + least, high + greatest
    if node.fn == "sub":
        return low - greatest, high - least
    if node.fn == "mul" and math.inf not in (-low, high, -least, greatest):
        corners = [a * b for a in (low, high) for b in (least, greatest)]
        return min(corners), max(corners)
    return ANY


_DERIVED = {
    "constant": _constant,
    "iota": _iota,
    "view": _first,
    "gather": _first,
    "cat": _joined,
    "reduce": _reduced,
    "pointwise": _pointwise,
}
