"""Split reductions of very long rows: the last dimensions first, then the rest, so that more programs take part."""

from __future__ import annotations

from collections.abc import Sequence

from synthesis.graph.nodes import FLOATS, HEADS, Node, Program
from synthesis.graph.sizes import Size, product

FEW_ROWS, LONG_ROW = 264, 1 << 17  # two programs for each processor of a large GPU; elements


def are_few_and_long(outer: Sequence[Size], row: Sequence[Size], one: Size) -> bool:
    """Return whether rows are too few for all processors, and long enough to share them."""
    rows, length = product(outer, one), product(row, one)
    return all(r < FEW_ROWS and n >= LONG_ROW for r, n in zip(rows.values, length.values, strict=True))


def split_reductions(program: Program) -> Program:
    """Let reductions of few long rows over several dimensions be two each, and return the program."""
    for node in program.inputs_first():
        if node.kind == "reduce" and node.data > 1:
            _split(node, program)
    return program


def _split(node: Node, program: Program) -> None:
    source = node.inputs[0]
    if (
        not are_few_and_long(node.shape, source.shape[len(node.shape) :], program.one)
        or node.dtype not in FLOATS
        or source.shape[-1].equals(1)
    ):
        return
    last = _last_dimensions(node, source, program.one)
    parts = source.shape[:-last]
    first = Node(f"{node.name}_of_rows", "reduce", node.fn, (source,), parts, "float32", last, node.origin)
    node.inputs, node.data = (first,), node.data - last


def _last_dimensions(node: Node, source: Node, one: Size) -> int:
    """Return how many dimensions the first reduction takes: as many as leave enough parts for all processors.

    What is left is reduced by few programs, so it should be short. Several dimensions are one row where each operand
    has all of them or none.
    """
    for last in range(node.data - 1, 1, -1):
        parts = product(source.shape[:-last], one)
        if all(count >= FEW_ROWS for count in parts.values) and _is_row(source, source.shape[-last:]):
            return last
    return 1


def _is_row(node: Node, row: tuple[Size, ...]) -> bool:
    """Return whether a pointwise node reads only tensors that have all of these last dimensions or none of them."""
    tail = node.shape[-len(row) :]
    if all(size.equals(1) for size in tail):
        return True
    if node.kind == "pointwise":
        return all(_is_row(child, row) for child in node.inputs)
    return node.kind in HEADS and tail == row
