"""Compute element-wise outputs in the order in which their inputs are in memory.

PyTorch does so, too: the sum of transposed tensors is in memory as they are. The output is then a transposed view of
what a kernel writes, with the strides that the reference's has.
"""

from __future__ import annotations

from collections.abc import Mapping

from synthesis.graph.aten import Graph
from synthesis.graph.build import Builder
from synthesis.graph.nodes import HEADS, Node, Program

Order = tuple[int, ...]
BETWEEN = ("pointwise", "view")


def follow_memory(program: Program, graphs: Mapping[str, Graph]) -> Program:
    """Let outputs that combine inputs transposed alike be views, where all are so, and return the program.

    A reference that asks for contiguous tensors gets them.
    """
    calls = [call for graph in graphs.values() for call in graph.nodes]
    if any(call.op == "aten.contiguous.default" or call.kwargs.get("memory_format") for call in calls):
        return program
    turner = _Turner(Builder(program.one))
    turned = [turner.output(output) for output in program.outputs]
    if all(node is not None for node in turned):
        program.outputs = [node for node in turned if node is not None]
    return program


class _Turner:
    """Rebuilds element-wise nodes in the order of their inputs' memory."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self._memo: dict[tuple[int, Order], Node | None] = {}

    def output(self, node: Node) -> Node | None:
        """Return the view that an output is of a node in the order of memory; None where it is not."""
        order = _order_of(node) if node.kind == "pointwise" else None
        inner = self._turned(node, order) if order is not None else None
        if inner is None or order is None:
            return None
        return Node(f"{node.name}_turned", "view", "permute", (inner,), node.shape, node.dtype, order)

    def _turned(self, node: Node, order: Order) -> Node | None:
        """Return a node that is this one once it is transposed by `order`; None where no tensor lies so in memory."""
        key = (id(node), order)
        if key not in self._memo:
            self._memo[key] = self._turn(node, order)
        return self._memo[key]

    def _turn(self, node: Node, order: Order) -> Node | None:
        if sum(not size.equals(1) for size in node.shape) <= 1 and node.rank <= len(order):
            return self._placed(node, order)
        if node.kind == "view" and node.fn == "permute" and node.data == order:
            return node.inputs[0]
        if node.kind != "pointwise" or node.rank != len(order):
            return None
        inputs = [self._turned(i, order) for i in node.inputs]
        kept = tuple(i for i in inputs if i is not None)
        if len(kept) < len(inputs):
            return None
        shape = self.build.broadcast([i.shape for i in kept])
        return Node(node.name, "pointwise", node.fn, kept, shape, node.dtype, node.data, node.origin)

    def _placed(self, node: Node, order: Order) -> Node | None:
        """Return a row or a single number, which has no order of its own, along its dimension in memory.

        A reduction stays in the loops of what it reduces.
        """
        if not node.shape or any(below.kind not in (*HEADS, "constant", *BETWEEN) for below in _below(node)):
            return node if node.kind == "constant" else None
        full = self.build.reshape(node, [self.build.one] * (len(order) - node.rank) + list(node.shape))
        return self.build.permute(full, sorted(range(len(order)), key=lambda d: order[d]))


def _order_of(root: Node) -> Order | None:
    """Return how a transposed input below element-wise operations is transposed."""
    turned = (n for n in _below(root) if n.kind == "view" and n.fn == "permute" and n.inputs[0].kind in HEADS)
    return next((tuple(node.data) for node in turned), None)


def _below(root: Node) -> list[Node]:
    """Return a node and those that it is computed from, down to nodes that are neither element-wise nor a view."""
    found = {id(root): root}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        fresh = [i for i in node.inputs if id(i) not in found] if node.kind in BETWEEN else []
        found |= {id(i): i for i in fresh}
        waiting += fresh
    return list(found.values())
