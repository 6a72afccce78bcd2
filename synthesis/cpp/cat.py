"""Split a row at the parts of its cats: each segment is swept on its own."""

from __future__ import annotations

import itertools

from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr
from synthesis.graph.sizes import Size
from synthesis.kernel import Kernel


def part_in_segment(expr: Expr, segment: int | None, bounds: list[Size]) -> Expr:
    """Return the part of a cat that lies in a segment of the row."""
    position, limits = expr.data
    if segment is None or position.terms != ((INNER, position.terms[0][1]),) or not position.terms[0][1].equals(1):
        raise Unsupported("a cat that is not along the row")
    start = bounds[segment] + position.const
    for part, end in zip(expr.args, limits[1:], strict=True):
        if start.less(end):
            return part
    raise Unsupported("a cat whose parts are not in order")


def find_breaks(kernel: Kernel, exprs: list[Expr]) -> list[Size]:
    """Return where the parts of cats begin along the row, in order, with the row's two ends."""
    found = {(kernel.one - 1).values: kernel.one - 1, kernel.length.values: kernel.length}
    for expr in exprs:
        if expr.op == "cat" and expr.full:
            position, limits = expr.data
            if position.coefficient(INNER) is None:
                raise Unsupported("a cat that is not along the row")
            for limit in limits:
                place = limit - position.const
                if all(0 < p < n for p, n in zip(place.values, kernel.length.values, strict=True)):
                    found.setdefault(place.values, place)
                elif any(0 < p < n for p, n in zip(place.values, kernel.length.values, strict=True)):
                    raise Unsupported("a cat whose parts change order between workloads")
    ordered = sorted(found.values(), key=lambda s: s.values)
    if any(not a.less(b) for a, b in itertools.pairwise(ordered)):
        raise Unsupported("a cat whose parts change order between workloads")
    return ordered
