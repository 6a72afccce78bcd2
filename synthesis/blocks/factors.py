"""Take products of values apart: what moves out of a sum over the depth, and what stays in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from synthesis.blocks.tile import walk
from synthesis.expr import Expr, Table
from synthesis.graph.sizes import Affine
from synthesis.kernel import rebuild


def factors(expr: Expr) -> list[Expr]:
    """Return the factors of a value."""
    if expr.op == "mul" and expr.type == "f":
        return [f for arg in expr.args for f in factors(arg)]
    return [expr]


def split(expr: Expr, table: Table) -> tuple[Expr | None, Expr | None]:
    """Return the factors that change along the columns and those that do not, each as one value of the table."""
    parts = factors(expr)
    return multiply([f for f in parts if f.full], table), multiply([f for f in parts if not f.full], table)


def multiply(parts: Iterable[Expr], table: Table) -> Expr | None:
    total: Expr | None = None
    for part in parts:
        total = part if total is None else table.pointwise("mul", (total, part), "f", "scaled")
    return total


def sums_inside(expr: Expr | None) -> list[Expr]:
    """Return the reductions that a value of each row is computed from."""
    return [e for e in walk([expr]) if e.op == "reduce"] if expr is not None else []


def same(a: Expr | None, b: Expr | None) -> bool:
    """Return whether two values of different tables are computed alike."""
    if a is None or b is None:
        return a is b
    alike = a.op == b.op and a.type == b.type and len(a.args) == len(b.args) and _data(a) == _data(b)
    return alike and all(same(x, y) for x, y in zip(a.args, b.args, strict=True))


def _data(expr: Expr) -> object:
    return (id(expr.data[0]), *expr.data[1:]) if expr.op == "load" else expr.data


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return a value over other variables: of each row of a weight as of each column, say."""

    def change(affine: Affine) -> Affine:
        return Affine.of(affine.const, {names.get(v, v): c for v, c in affine.terms})

    return rebuild(expr, Table(), change, {})
