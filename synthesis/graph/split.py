"""Split reductions of very long rows: the last dimension first, then the rest, so that more programs take part."""

from __future__ import annotations

from synthesis.graph.nodes import FLOATS, Node, Program
from synthesis.graph.sizes import product

FEW_ROWS, LONG_ROW = 264, 1 << 17  # two programs for each processor of a large GPU; elements


def split_reductions(program: Program) -> Program:
    """Let reductions of few long rows over several dimensions be two each, and return the program."""
    for node in program.inputs_first():
        if node.kind == "reduce" and node.data > 1:
            _split(node, program)
    return program


def _split(node: Node, program: Program) -> None:
    source = node.inputs[0]
    rows, length = product(node.shape, program.one), product(source.shape[len(node.shape) :], program.one)
    few = all(r < FEW_ROWS and n >= LONG_ROW for r, n in zip(rows.values, length.values, strict=True))
    if not few or node.dtype not in FLOATS or source.shape[-1].equals(1):
        return
    first = Node(f"{node.name}_of_rows", "reduce", node.fn, (source,), source.shape[:-1], "float32", 1, node.origin)
    node.inputs, node.data = (first,), node.data - 1
