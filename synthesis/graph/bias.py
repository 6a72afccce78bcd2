"""Take biases out of large float32 products, where an element-wise kernel follows that can add them for nothing.

A library's product with a bias is another algorithm than the one without, and for some sizes a much slower one.
"""

from __future__ import annotations

from synthesis.graph.nodes import Node, Program

LINEAR = "aten.linear.default"


def detach_biases(program: Program) -> Program:
    """Let each linear layer with a bias that only element-wise operations read be a product and a sum."""
    nodes: dict[int, Node] = {}
    users: dict[int, list[Node]] = {}

    def visit(node: Node) -> None:
        if id(node) not in nodes:
            nodes[id(node)] = node
            for child in node.inputs:
                users.setdefault(id(child), []).append(node)
                visit(child)

    for output in program.outputs:
        visit(output)
    outputs = {id(output) for output in program.outputs}
    for node in list(nodes.values()):
        followed = [user.kind in ("pointwise", "reduce", "view") for user in users.get(id(node), [])]
        if node.kind == "library" and node.fn == LINEAR and id(node) not in outputs and followed and all(followed):
            _detach(node)
    return program


def _detach(node: Node) -> None:
    args, named = node.data
    bias = named.get("bias", args[2] if len(args) > 2 else None)
    if not isinstance(bias, Node) or node.dtype != "float32" or any(not isinstance(a, Node) for a in args[:2]):
        return
    product = Node(f"{node.name}_product", "library", LINEAR, tuple(args[:2]), node.shape, node.dtype, (args[:2], {}))
    product.origin = node.origin
    node.kind, node.fn, node.inputs, node.data = "pointwise", "add", (product, bias), None
