"""Fold constant factors of a kernel with results of 16 bits: products of constants are computed here, once."""

from __future__ import annotations

import math

from synthesis.expr import Expr, Table
from synthesis.kernel import Kernel, Store


def fold_constants(kernel: Kernel) -> Kernel:
    """Return the kernel with each chain of products as one constant times the rest."""
    folder = _Folder()
    stores = [Store(s.node, folder.whole(s.value), s.offset) for s in kernel.stores]
    return Kernel(kernel.name, kernel.outer, kernel.length, stores, kernel.one, kernel.segments)


def _divides(expr: Expr) -> bool:
    """Return whether this is a number with a finite reciprocal that is not zero."""
    return expr.op == "const" and isinstance(expr.data, int | float) and 1e-30 < abs(expr.data) < 1e30


def _least(expr: Expr) -> float:
    """Return a number that a value is not below, as far as is seen."""
    if expr.op == "const" and isinstance(expr.data, int | float):
        return float(expr.data)
    if expr.op == "maximum":
        return max(map(_least, expr.args))
    if expr.op in ("mul", "div") and all(_least(arg) > 0 for arg in expr.args) and expr.args[1].op == "const":
        number = float(expr.args[1].data)
        return _least(expr.args[0]) * (number if expr.op == "mul" else 1 / number)
    return float("-inf")


def _tanh_plus_one(expr: Expr) -> int | None:
    """Return which argument of a sum is the hyperbolic tangent that one is added to."""
    for place, other in ((0, 1), (1, 0)):
        one = expr.args[other]
        if expr.args[place].op == "tanh" and one.op == "const" and one.data == 1:
            return place
    return None


class _Folder:
    def __init__(self) -> None:
        self.table = Table()
        self.memo: dict[int, tuple[float, Expr | None]] = {}

    def whole(self, expr: Expr) -> Expr:
        """Return an expression, its factor included."""
        factor, rest = self.parts(expr)
        if rest is None:
            return self.table.const(factor, "f")
        if factor == 1.0:
            return rest
        if factor == -1.0:
            return self.table.pointwise("neg", (rest,), "f", expr.hint)
        return self.table.pointwise("mul", (rest, self.table.const(factor, "f")), "f", expr.hint)

    def parts(self, expr: Expr) -> tuple[float, Expr | None]:
        """Return a constant and an expression whose product this is; None for a mere constant."""
        if expr.number not in self.memo:
            self.memo[expr.number] = self._parts(expr)
        return self.memo[expr.number]

    def _parts(self, expr: Expr) -> tuple[float, Expr | None]:
        if expr.type == "f" and expr.op == "const" and isinstance(expr.data, int | float):
            return float(expr.data), None
        if expr.type == "f" and expr.op == "mul":
            (a, left), (b, right) = map(self.parts, expr.args)
            product = a * b
            if math.isfinite(product) and (product == 0.0) == (0.0 in (a, b)):
                if left is None or right is None:
                    return product, right if left is None else left
                return product, self.table.pointwise("mul", (left, right), "f", expr.hint)
        if expr.op == "div" and expr.type == "f" and _divides(expr.args[1]):
            factor, rest = self.parts(expr.args[0])
            return factor / float(expr.args[1].data), rest
        if expr.op == "div" and expr.args[0].full and not expr.args[1].full and _least(expr.args[1]) > 1e-30:
            factor, rest = self.parts(expr.args[0])
            inverse = self.table.pointwise("reciprocal", (self.whole(expr.args[1]),), "f", "inverse")
            if rest is not None:
                return factor, self.table.pointwise("mul", (rest, inverse), "f", expr.hint)
        if expr.op == "add" and _tanh_plus_one(expr) is not None:
            factor, rest = self.parts(expr.args[_tanh_plus_one(expr) or 0].args[0])
            doubled = self.table.const(2.0 * factor, "f")
            if rest is not None:  # 1 + tanh(u) is 2 sigmoid(2 u)
                doubled = self.table.pointwise("mul", (rest, doubled), "f", expr.hint)
            return 2.0, self.table.pointwise("sigmoid", (doubled,), "f", expr.hint)
        if expr.type == "f" and expr.op == "neg":
            factor, rest = self.parts(expr.args[0])
            return -factor, rest
        return 1.0, self._same(expr)

    def _same(self, expr: Expr) -> Expr:
        args = tuple(self.whole(arg) for arg in expr.args)
        if expr.op == "load":
            return self.table.load(expr.data[0], expr.data[1], expr.data[2], args)
        if expr.op == "const":
            return self.table.const(expr.data, expr.type)
        if expr.op == "iota":
            return self.table.iota(expr.data)
        if expr.op == "cat":
            return self.table.cat(expr.data[0], expr.data[1], args)
        if expr.op == "reduce":
            return self.table.reduce(expr.data, args[0], expr.hint)
        if expr.op == "segment":
            return self.table.segment(expr.data, args[0], expr.hint)
        return self.table.pointwise(expr.op, args, expr.type, expr.hint)
