"""Plan which nodes are fused into which kernels, and the order of kernels and library calls.

Stored in memory are outputs, arguments of library calls, and reductions with loops that do not fit the kernel that
needs them. Everything else is computed inside the kernels that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from synthesis.errors import Unsupported
from synthesis.expr import INNER, Table
from synthesis.graph.nodes import FLOATS, HEADS, OF_ROWS, QUANTISED, Node, Program
from synthesis.graph.sizes import Affine, product
from synthesis.index import Cut, Evaluator, Index, SegmentSpace, Space, linear
from synthesis.kernel import Kernel, Store, collapse

MAX_ROUNDS = 60
LIBRARY = ("library", "item")


@dataclass(slots=True)
class Plan:
    """Steps in order: a Kernel, or a Node that is a library call (or a `cat` or view left to the library)."""

    steps: list[Kernel | Node]
    program: Program


@dataclass(slots=True)
class _Root:
    node: Node
    space: Space


class Planner:
    """Plans a program. With `segments`, reductions of rows and of their segments are one kernel where they can be.
    Nodes in `stored` are computed by kernels of their own. With `runs`, a row may be several runs of elements."""

    def __init__(
        self, program: Program, *, segments: bool = False, stored: Iterable[Node] = (), runs: bool = False
    ) -> None:
        self.program = program
        self.segments = segments
        self.runs = runs
        self.one = program.one
        self.barriers: set[int] = {id(node) for node in stored}

    def run(self) -> Plan:
        """Plan; where a kernel is impossible, cut there and plan again. Raise Unsupported."""
        for _ in range(MAX_ROUNDS):
            try:
                return self._attempt()
            except Cut as cut:
                if id(cut.node) in self.barriers:
                    raise Unsupported(f"{cut.node.name} cannot be computed alone") from cut
                self.barriers.add(id(cut.node))
        raise Unsupported("the reference falls into too many pieces")

    def _attempt(self) -> Plan:
        self._stages: dict[int, int] = {}
        self.required: dict[int, Node] = {}
        calls: dict[int, Node] = {}
        for output in self.program.outputs:
            self._require(output, calls)
        stages: dict[int, list[Node]] = {}
        for node in [*self.required.values(), *calls.values()]:
            stages.setdefault(self.stage(node), []).append(node)
        steps: list[Kernel | Node] = []
        for stage in sorted(stages):
            steps += self._kernels([n for n in stages[stage] if n.kind not in LIBRARY])
            steps += [n for n in stages[stage] if n.kind == "library"]
            steps += [n for n in stages[stage] if n.kind == "item"]
        return Plan(steps, self.program)

    def base(self, node: Node) -> Node:
        """Return the node in memory below host views."""
        while node.kind == "view" and id(node) not in self.barriers:
            node = node.inputs[0]
        return node

    def _require(self, node: Node, calls: dict[int, Node]) -> None:
        """Note everything that must be in memory for `node` to be there."""
        node = self.base(node)
        if node.kind in HEADS or id(node) in self.required or id(node) in calls:
            return
        if node.kind in LIBRARY:
            calls[id(node)] = node
            for argument in node.inputs:
                self._require(argument, calls)
            return
        self.required[id(node)] = node
        self._inside(node, calls, set())

    def _inside(self, node: Node, calls: dict[int, Node], seen: set[int]) -> None:
        for child in node.inputs:
            if id(child) in seen:
                continue
            seen.add(id(child))
            if child.kind in LIBRARY or id(child) in self.barriers:
                self._require(child, calls)
            elif child.kind not in HEADS:
                self._inside(child, calls, seen)

    def stage(self, node: Node) -> int:
        """Return how many library calls or barriers precede a node."""
        if id(node) not in self._stages:
            level = 0
            for child in node.inputs:
                apart = self.base(child).kind in LIBRARY or id(self.base(child)) in self.barriers
                apart = apart and node.kind != "item" and not (node.kind == "view" and id(node) not in self.barriers)
                level = max(level, self.stage(child) + (1 if apart else 0))
            self._stages[id(node)] = level
        return self._stages[id(node)]

    # ---- kernels of one stage

    def _kernels(self, nodes: list[Node]) -> list[Kernel]:
        roots = [_Root(node, self._space(node)) for node in nodes]
        roots.sort(key=lambda r: not r.space.inner)
        groups: list[list[_Root]] = []
        for root in roots:
            shape = [s.values for s in root.space.outer + root.space.inner]
            for group in groups:
                space = group[0].space
                same = root.space.key == space.key
                fits = not root.space.inner and [s.values for s in space.whole_shape] == shape
                if same or fits:
                    group.append(root)
                    break
            else:
                groups.append([root])
        return [self._kernel(group) for group in groups]

    def _kernel(self, group: list[_Root]) -> Kernel:
        space = group[0].space
        stage = self.stage(group[0].node)
        inside = {id(r.node) for r in group}

        evaluator = self._evaluator(space, stage, inside)
        stores = []
        for root in group:
            try:
                index = self._index(root.node, space)
                value = evaluator.at(root.node, index)
            except Cut as cut:
                node = cut.node if id(cut.node) in self.barriers else evaluator.widest(cut.node)
                raise Cut(node if id(node) not in self.barriers | inside else cut.node) from cut
            stores.append(Store(root.node, value, linear(index, root.node.shape, self.one)))
        loops = [(v, s) for v, s in space.extents.items() if v[0] == "o"]
        row = [(v, s) for v, s in space.extents.items() if v[0] == INNER]
        name = "_".join(dict.fromkeys(r.node.name for r in group[:2]))
        kernel = collapse(f"fused_{name}", loops, row, stores, self.one, runs=self.runs)
        kernel.segments = space.inner[0] if isinstance(space, SegmentSpace) else None
        return kernel

    def _space(self, node: Node) -> Space:
        """Return the loops for a root: those of the nearest reduction or scan inside it, else one per dimension."""
        reduction = self._nearest_reduction(node)
        if reduction is None:
            return Space(node.shape, (), self.one)
        shape = reduction.inputs[0].shape
        split = len(shape) - reduction.data
        space = self._segmented(reduction) or Space(shape[:split], shape[split:], self.one)
        source = reduction.inputs[0]
        if source.kind == "view" and source.fn == "permute":
            moved = Space(shape[:split], shape[split:], self.one, source.data)
            space = moved if self._suits(node, moved) else space
        try:
            self._index(node, space)
        except Unsupported:
            if reduction is node:
                raise
            raise Cut(reduction) from None
        return space

    def _suits(self, node: Node, space: Space) -> bool:
        """Return whether a root and its reduction are computed in the same loops."""
        try:
            self._evaluator(space, self.stage(node), {id(node)}).at(node, self._index(node, space))
        except Unsupported:
            return False
        return True

    def _evaluator(self, space: Space, stage: int, inside: Set[int]) -> Evaluator:
        """Return an Evaluator for a kernel of a stage, which computes the nodes with the ids `inside`."""

        def stored(node: Node) -> bool:
            ready = id(node) in self.required and id(node) not in inside
            return ready and (id(node) in self.barriers or self.stage(node) < stage)

        return Evaluator(space, Table(), stored)

    def _segmented(self, reduction: Node) -> Space | None:
        """Return the loops over rows and their segments, where `reduction` is over segments of rows that something
        below it reduces whole."""
        *outer, segments, length = (self.one, self.one, *reduction.inputs[0].shape)
        below = self._nearest_reduction(reduction.inputs[0]) if self.segments and reduction.data == 1 else None
        if below is None or reduction.inputs[0].rank < 2 or below.data != 1:
            return None
        space = SegmentSpace(outer[2:], segments, length, self.one)
        return space if below.inputs[0].shape == space.row_shape else None

    def _nearest_reduction(self, root: Node) -> Node | None:
        queue, seen = [root], {id(root)}
        while queue:
            node = queue.pop(0)
            if node.kind in OF_ROWS:
                return node
            for child in node.inputs:
                crossing = child.kind in (*HEADS, *LIBRARY) or id(child) in self.barriers
                crossing = crossing or (id(child) in self.required and self.stage(child) < self.stage(root))
                if not crossing and id(child) not in seen:
                    seen.add(id(child))
                    queue.append(child)
        return None

    def _index(self, node: Node, space: Space) -> Index:
        """Return where a root's elements are in the loops. Raise Unsupported."""
        places = [(space.whole_shape, space.whole_index), (space.outer, space.outer_index)]
        if isinstance(space, SegmentSpace):
            places.insert(1, (space.outer + space.inner[:1], space.segment_index))
        for shape, index in places:
            if node.shape == shape:
                return index
        zero = Affine.of(space.zero)
        kept = zip(*places[1], strict=True)
        outer = [(s, p) for s, p in kept if not s.equals(1)]
        if [s for s in node.shape if not s.equals(1)] == [s for s, _ in outer]:
            rest = iter(p for _, p in outer)
            return tuple(zero if s.equals(1) else next(rest) for s in node.shape)
        if product(node.shape, self.one) == product(space.outer + space.inner, self.one):
            joined = Evaluator(space, Table(), lambda _: False)
            return joined.reshaped(space.whole_shape, node.shape, space.whole_index)
        raise Unsupported(f"{node.name} does not fit the loops of its reduction")


def make_plan(
    program: Program, *, segments: bool = False, stored: Iterable[Node] = (), runs: bool = False
) -> tuple[Plan, Planner]:
    """Return the plan of a program, and the planner that knows which nodes are in memory.

    Raise Unsupported for a node that can neither be fused nor called.
    """
    for node in program.outputs:
        if node.dtype not in (*FLOATS, *QUANTISED, "bool", "int64", "int32", "uint8", "int8", "int16"):
            raise Unsupported(f"outputs of dtype {node.dtype}")
    planner = Planner(program, segments=segments, stored=stored, runs=runs)
    return planner.run(), planner
