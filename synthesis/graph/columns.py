"""Take products of few rows apart by columns, and put those of slices of one tensor together, as cells of recurrences
need it: gates that meet element by element are then products of one kernel, and the inputs of all steps one product."""

from __future__ import annotations

from collections.abc import Iterator

from synthesis.graph.build import Builder
from synthesis.graph.nodes import Node, Program
from synthesis.graph.sizes import Size, product

LINEAR = "aten.linear.default"
MOST_ROWS = 64


def join_slices(program: Program) -> None:
    """Let linear layers of one weight on the slices of a tensor's first dimension be one product of all of them."""
    found: dict[tuple[int, int], list[tuple[Node, Size]]] = {}
    sources: dict[int, Node] = {}
    for node in program.inputs_first():
        place = _slice_of(node)
        if place is not None:
            source, number = place
            sources[id(source)] = source
            found.setdefault((id(source), id(node.data[0][1])), []).append((node, number))
    build = Builder(program.one)
    for (source_id, _), members in found.items():
        if len(members) > 1 and sources[source_id].shape[0].equals(len(members)):
            _join([node for node, _ in members], [number for _, number in members], sources[source_id], build)


def _slice_of(node: Node) -> tuple[Node, Size] | None:
    """Return the tensor and the number of the slice that a linear layer without a bias reads, else None."""
    if node.kind != "library" or node.fn != LINEAR or len(node.data[0]) != 2 or node.data[1] or node.rank != 2:
        return None
    view = rows = node.data[0][0]
    while view.kind == "view" and view.fn == "reshape":
        view = view.inputs[0]
    if view.kind != "view" or view.fn != "slice" or view.data[0] != 0 or view.data[2] != 1 or view.rank != 3:
        return None
    start = view.data[1]
    return (view.inputs[0], start) if view.shape[0].equals(1) and rows.shape == view.shape[1:] else None


def _join(members: list[Node], numbers: list[Size], source: Node, build: Builder) -> None:
    weight = members[0].data[0][1]
    steps, rows, depth = source.shape
    flat = build.reshape(source, (steps * rows, depth))
    columns = members[0].shape[-1]
    name = f"{members[0].name}_of_all"
    joint = Node(name, "library", LINEAR, (flat, weight), (steps * rows, columns), members[0].dtype)
    joint.data, joint.origin = ([flat, weight], {}), members[0].origin
    apart = build.reshape(joint, (steps, rows, columns))
    for node, number in zip(members, numbers, strict=True):
        node.kind, node.fn, node.inputs, node.data = "item", "number", (apart,), number


def split_columns(program: Program) -> None:
    """Let slices of a product's columns be products with slices of its weight, where such slices meet again."""
    build = Builder(program.one)
    build.reserve(node.name for node in program.inputs_first())
    known: dict[tuple[int, str], Node] = {}
    for view, products in _meeting(program):
        _, start, _ = view.data
        made = _sliced(view.inputs[0], start, view.shape[-1], {id(p) for p in products}, build, known)
        view.kind, view.fn, view.inputs = made.kind, made.fn, made.inputs
        view.data, view.origin = made.data, made.origin


def _meeting(program: Program) -> list[tuple[Node, list[Node]]]:
    """Return the slices of columns that meet others of the same product element by element, with their products."""
    below: dict[int, dict[int, Node]] = {}
    met: dict[int, Node] = {}
    for node in program.inputs_first():
        if node.kind == "view" and node.fn == "slice" and node.data[0] == node.rank - 1 and node.data[2] == 1:
            below[id(node)] = {id(node): node} if list(_products(node.inputs[0])) else {}
        elif node.kind == "pointwise":
            slices = {key: view for child in node.inputs for key, view in below.get(id(child), {}).items()}
            below[id(node)] = slices
            sources = [id(view.inputs[0]) for view in slices.values()]
            met |= {key: view for key, view in slices.items() if sources.count(id(view.inputs[0])) > 1}
    return [(view, list(_products(view.inputs[0]))) for view in met.values()]


def _products(node: Node) -> Iterator[Node]:
    """Yield the products of few rows that an element-wise value is computed from."""
    if node.kind == "library" and node.fn == LINEAR and len(node.data[0]) == 2 and not node.data[1]:
        rows: list[Size] = list(node.shape[:-1])
        if max(product(rows[1:], rows[0]).values if rows else [1]) <= MOST_ROWS:
            yield node
    elif node.kind == "pointwise":
        for child in node.inputs:
            yield from _products(child)


def _sliced(
    node: Node, start: Size, length: Size, products: set[int], build: Builder, known: dict[tuple[int, str], Node]
) -> Node:
    """Return some columns of an element-wise value of products."""
    if not node.rank or node.shape[-1].equals(1):
        return node
    key = (id(node), f"{start.text()}:{length.text()}")
    if key not in known:
        known[key] = _new_slice(node, start, length, products, build, known)
    return known[key]


def _new_slice(
    node: Node, start: Size, length: Size, products: set[int], build: Builder, known: dict[tuple[int, str], Node]
) -> Node:
    shape = (*node.shape[:-1], length)
    if id(node) in products:
        rows, weight = node.data[0]
        some = build.slice(weight, 0, start, length)
        name = build.name(node.name)
        return Node(name, "library", LINEAR, (rows, some), shape, node.dtype, ([rows, some], {}), node.origin)
    if node.kind == "pointwise":
        inputs = tuple(_sliced(child, start, length, products, build, known) for child in node.inputs)
        return Node(build.name(node.name), "pointwise", node.fn, inputs, shape, node.dtype, node.data, node.origin)
    return build.slice(node, node.rank - 1, start, length)
