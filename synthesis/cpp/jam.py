"""Compute several rows in one sweep where they read the same elements, as the columns of a product do.

Each vector that is loaded then serves several sums, which stay in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synthesis.expr import Expr, Table
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Kernel, Store, rebuild

COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Jam:
    """The loops of a kernel in another order: `apart` ones, blocks of `column`, and inside it those of `row`."""

    apart: tuple[tuple[str, Size], ...]
    column: tuple[str, Size]
    row: tuple[str, Size] | None
    rows: int
    sums: int


def find_jam(kernel: Kernel, most: int) -> Jam | None:
    """Return how rows of a kernel share what they load, in at most so many vectors of sums; None where they do not, or
    are more than sums of one pass."""
    sums = [e for e in kernel.exprs() if e.op == "reduce"]
    loads = [e.data[1] for e in kernel.exprs() if e.op == "load" and e.full]
    plain = sums and all(e.data == "sum" for e in sums) and not any(e.op in ("cat", "scan") for e in kernel.exprs())
    if not plain or kernel.passes != 1 or kernel.runs or any(s.full for s in kernel.stores) or len(sums) > COLUMNS:
        return None
    sharing = [loop for loop in kernel.outer if any(offset.coefficient(loop[0]) is None for offset in loads)]
    if not sharing:
        return None
    column = max(sharing, key=lambda loop: max(loop[1].values))
    row = next((loop for loop in sharing if loop is not column), None)
    apart = tuple(loop for loop in kernel.outer if loop not in (column, row))
    rows = max(1, most // (COLUMNS * len(sums))) if row is not None else 1
    return Jam(apart, column, row, rows, len(sums))


def several(kernel: Kernel, shifts: list[Mapping[str, int]]) -> Kernel:
    """Return the kernel with a copy of every store at each of the shifts; what the copies share is one expression."""
    table, stores = Table(), []
    for shift in shifts:

        def change(affine: Affine, shift: Mapping[str, int] = shift) -> Affine:
            for variable, count in shift.items():
                step = affine.coefficient(variable)
                affine = affine if step is None or not count else affine.shifted(step * count)
            return affine

        memo: dict[int, Expr] = {}
        stores += [Store(s.node, rebuild(s.value, table, change, memo), change(s.offset)) for s in kernel.stores]
    return Kernel(kernel.name, kernel.outer, kernel.length, stores, kernel.one)


def shifts_of(jam: Jam, columns: int, rows: int) -> list[Mapping[str, int]]:
    return [
        {jam.column[0]: c} | ({jam.row[0]: r} if jam.row is not None else {})
        for r in range(rows)
        for c in range(columns)
    ]


def unroll(jam: Jam, columns: int, rows: int) -> int:
    """Return how many vectors each sum takes at a time."""
    return max(1, min(4, 2 * COLUMNS // (columns * rows * jam.sums)))


def is_product(expr: Expr) -> bool:
    """Return true for a sum of products, which are added with one rounding."""
    body = expr.args[0]
    return expr.data == "sum" and body.op == "mul" and body.full and body.type == "f"
