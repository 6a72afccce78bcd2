"""Write products of few rows as sums along rows, for processors: weights are read once, and so are what others share.

Libraries pack the weights of a product first, which a few rows do not pay back.
"""

from __future__ import annotations

from synthesis.blocks.block import MATMULS, base
from synthesis.graph.build import Builder
from synthesis.graph.nodes import HEADS, Node, Program

MOST_ROWS, LEAST_DEPTH = 16, 32
LIBRARIES = ("library", "item")


def write_out_products(program: Program) -> list[Node]:
    """Let products of few rows be reductions. Return the nodes that are to be stored: their results, and what they
    read where it is computed."""
    stored: dict[int, Node] = {}
    for node in program.inputs_first():
        operands = _operands(node)
        if operands is not None:
            _write_out(node, *operands, program)
            x = base(operands[0])
            stored.update({id(n): n for n in (x, node) if n.kind not in (*HEADS, *LIBRARIES)})
    return list(stored.values())


def _operands(node: Node) -> tuple[Node, Node, Node | None] | None:
    """Return (rows, weights with a column of the result in each row, bias) of a product that is to be written out."""
    if node.kind != "library" or node.fn not in (*MATMULS, "aten.addmm.default"):
        return None
    args, named = node.data
    if node.fn == "aten.addmm.default":
        bias, x, weights = args[:3]
        if any(named.get(name, 1) != 1 for name in ("alpha", "beta")) or not _is_row(bias, node):
            return None
    else:
        x, weights = args[:2]
        bias = named.get("bias", args[2] if len(args) > 2 else None)
    if node.fn != "aten.linear.default":
        if weights.rank != 2 or weights.kind != "view" or weights.fn != "permute":
            return None
        weights = weights.inputs[0]
    rows = [1] * len(node.shape[-1].values)
    for size in node.shape[:-1]:
        rows = [a * b for a, b in zip(rows, size.values, strict=True)]
    fits = max(rows) <= MOST_ROWS and min(x.shape[-1].values) >= LEAST_DEPTH and weights.kind in HEADS
    floats = all(n.dtype == "float32" for n in (node, x, weights))
    return (x, weights, bias) if fits and floats and x.rank == node.rank else None


def _is_row(bias: Node, node: Node) -> bool:
    return isinstance(bias, Node) and bias.rank == 1 and bias.shape == node.shape[-1:]


def _write_out(node: Node, x: Node, weights: Node, bias: Node | None, program: Program) -> None:
    build = Builder(program.one)
    depth = x.shape[-1]
    rows = build.reshape(x, (*x.shape[:-1], program.one, depth))
    terms = Node(f"{node.name}_terms", "pointwise", "mul", (rows, weights), (*node.shape, depth), "float32")
    program.fused.append(node.origin or "linear")
    if bias is None:
        node.kind, node.fn, node.inputs, node.data = "reduce", "sum", (terms,), 1
        return
    total = Node(f"{node.name}_sum", "reduce", "sum", (terms,), node.shape, "float32", 1, node.origin)
    node.kind, node.fn, node.inputs, node.data = "pointwise", "add", (total, bias), None
