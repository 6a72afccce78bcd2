"""Split rows across memory that are long and few: programs reduce parts of them, a second kernel joins these."""

from __future__ import annotations

from synthesis.expr import INNER, Expr, Table
from synthesis.graph.nodes import PLACES, Node
from synthesis.graph.sizes import Affine, Size, product
from synthesis.index import linear
from synthesis.kernel import Kernel, Store, rebuild

PARTS = 128  # of each row
FEW_ROWS, LONG_ROW = 8192, 4096  # two strips for each processor of a large GPU; elements
PART = "part"  # the variable of a program's part


def split(kernel: Kernel) -> tuple[Kernel, Kernel] | None:
    """Return the kernel of parts and the one that joins them, None where rows are many, short or gone over twice."""
    reductions = [e for e in kernel.exprs() if e.op == "reduce"]
    rows = product((extent for _, extent in kernel.outer), kernel.one)
    few = max(rows.values) < FEW_ROWS and min(kernel.length.values) >= LONG_ROW
    if not few or kernel.passes > 1 or any(s.full for s in kernel.stores) or any(r.data in PLACES for r in reductions):
        return None
    count, zero = Size.literal(PARTS, kernel.one), kernel.one - 1
    index = tuple(Affine.of(zero, {variable: kernel.one}) for variable, _ in kernel.outer)
    own = linear(index, [extent for _, extent in kernel.outer], kernel.one)
    table, memo = Table(), dict[int, Expr]()
    stores = []
    for r in reductions:
        shape = (count, *(extent for _, extent in kernel.outer))
        node = Node(f"{r.hint}_parts", "reduce", r.data, (), shape, "float32", 1)
        stores.append(Store(node, r, own + Affine.of(zero, {PART: rows})))
        loaded = table.load(node, own + Affine.of(zero, {INNER: rows}))
        memo[r.number] = table.reduce(r.data, loaded, r.hint)
    joined = [Store(s.node, rebuild(s.value, table, lambda place: place, memo), s.offset) for s in kernel.stores]
    return (
        Kernel(kernel.name, kernel.outer, kernel.length, stores, kernel.one),
        Kernel(f"{kernel.name}_of_parts", kernel.outer, count, joined, kernel.one),
    )
