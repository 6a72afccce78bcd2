"""Evaluate nodes at an index: views become index arithmetic, reductions become row values of the current kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from synthesis.errors import Unsupported
from synthesis.expr import INNER, SEGMENT, Expr, Table, kind_of
from synthesis.graph.nodes import HEADS, Node
from synthesis.graph.sizes import Affine, Size, product

Index = tuple[Affine, ...]


class Cut(Unsupported):
    """Raised for a reduction that does not fit the loops of this kernel: an earlier kernel must compute it."""

    def __init__(self, node: Node) -> None:
        super().__init__(f"{node.name} needs a kernel of its own")
        self.node = node


class Space:
    """The loops of a kernel: a variable per outer dimension, and one (`j`, after collapsing) along the row.

    `order` says which dimension each of them is, outer ones first, where the rows are not along the last ones.
    """

    def __init__(
        self, outer: Sequence[Size], inner: Sequence[Size], one: Size, order: Sequence[int] | None = None
    ) -> None:
        self.one = one
        self.order = tuple(range(len(outer) + len(inner))) if order is None else tuple(order)
        self.zero = one - 1
        self.outer, self.inner = tuple(outer), tuple(inner)
        self.extents: dict[str, Size] = {}
        self.outer_index = tuple(self._variable(f"o{i}", s) for i, s in enumerate(outer))
        names = [INNER] if len(inner) == 1 else [f"{INNER}{i}" for i in range(len(inner))]
        self.inner_index = tuple(self._variable(n, s) for n, s in zip(names, inner, strict=True))

    def _variable(self, name: str, size: Size) -> Affine:
        if size.equals(1):
            return Affine.of(self.zero)
        self.extents[name] = size
        return Affine.of(self.zero, {name: self.one})

    @property
    def index(self) -> Index:
        return self.outer_index + self.inner_index

    @property
    def whole_shape(self) -> tuple[Size, ...]:
        """The shape that the loops go over, its dimensions in the order in which they are in memory."""
        sizes = dict(zip(self.order, self.outer + self.inner, strict=True))
        return tuple(sizes[d] for d in range(len(self.order)))

    @property
    def whole_index(self) -> Index:
        places = dict(zip(self.order, self.index, strict=True))
        return tuple(places[d] for d in range(len(self.order)))

    @property
    def key(self) -> tuple[tuple[int, ...], ...]:
        return (self.order, *(s.values for s in self.outer), (-1,), *(s.values for s in self.inner))


class SegmentSpace(Space):
    """Rows in segments of equal length: variable `s` for the segment, `j` inside it."""

    def __init__(self, outer: Sequence[Size], segments: Size, length: Size, one: Size) -> None:
        super().__init__(outer, (), one)
        self.order = tuple(range(len(outer) + 2))
        self.inner = (segments, length)
        self.inner_index = (self._variable(SEGMENT, segments), self._variable(INNER, length))

    @property
    def row_shape(self) -> tuple[Size, ...]:
        """The shape of the rows as one run of elements."""
        return (*self.outer, self.inner[0] * self.inner[1])

    @property
    def row_index(self) -> Index:
        segment, place = self.inner_index
        return (*self.outer_index, segment.scaled(self.inner[1]) + place)

    @property
    def segment_index(self) -> Index:
        return (*self.outer_index, self.inner_index[0])


def strides(shape: Sequence[Size], one: Size) -> list[Size]:
    result, step = [], one
    for size in reversed(shape):
        result.append(step)
        step = step * size
    return result[::-1]


def linear(index: Index, shape: Sequence[Size], one: Size) -> Affine:
    """Return the offset of an element of a dense tensor."""
    offset = Affine.of(one - 1)
    for position, stride in zip(index, strides(shape, one), strict=True):
        offset = offset + position.scaled(stride)
    return offset


class Evaluator:
    """Evaluates nodes in one Space. `stored(node)` tells whether a node is loaded rather than computed."""

    def __init__(self, space: Space, table: Table, stored: Callable[[Node], bool]) -> None:
        self.space, self.table, self.stored = space, table, stored
        self._memo: dict[tuple[int, Index], Expr] = {}
        self._path: list[Node] = []
        self._chosen: dict[str, Expr] = {}

    def at(self, node: Node, index: Index) -> Expr:
        key = (id(node), index)
        if key not in self._memo:
            self._path.append(node)
            self._memo[key] = self._evaluate(node, index)
            self._path.pop()
        return self._memo[key]

    def widest(self, cut: Node) -> Node:
        """Return the last pointwise node on the way up from `cut` with as many elements: the best one to store."""
        count = product(cut.shape, self.space.one)
        best = cut
        for node in reversed(self._path[1:]):
            if node is cut:
                continue
            if node.kind not in ("pointwise", "view", "reduce") or product(node.shape, self.space.one) != count:
                break
            if node.kind == "reduce":
                break
            if node.kind == "pointwise":
                best = node
        return best

    def _evaluate(self, node: Node, index: Index) -> Expr:
        if node.kind in (*HEADS, "library", "item") or self.stored(node):
            return self._load(node, linear(index, node.shape, self.space.one))
        if node.kind == "constant":
            return self.table.const(node.data, kind_of(node.dtype))
        if node.kind == "iota":
            return self.table.iota(self._loops_only(index[node.data]))
        if node.kind == "pointwise":
            args = tuple(self.at(i, self._broadcast(i, index)) for i in node.inputs)
            return self.table.pointwise(node.fn, args, kind_of(node.dtype), node.name)
        if node.kind == "view":
            return self._viewed(node, index)
        if node.kind == "cat":
            return self._cat(node, index)
        if node.kind == "gather":
            return self._gather(node, index)
        if node.kind == "reduce":
            return self._reduce(node, index)
        if node.kind == "scan":
            return self._scan(node, index)
        if node.kind == "pad":
            return self._padded(node, index)
        raise Unsupported(node.kind)

    def _broadcast(self, operand: Node, index: Index) -> Index:
        tail = index[len(index) - operand.rank :]
        zero = Affine.of(self.space.zero)
        return tuple(zero if s.equals(1) else p for s, p in zip(operand.shape, tail, strict=True))

    def _reduce(self, node: Node, index: Index) -> Expr:
        source, space = node.inputs[0], self.space
        count = node.data
        if isinstance(space, SegmentSpace):
            return self._reduce_segmented(node, index, space)
        fits = index == space.outer_index and source.shape == space.outer + space.inner and count == len(space.inner)
        if not fits or not space.inner:
            raise Cut(node)
        return self.table.reduce(node.fn, self.at(source, space.index), node.name)

    def _scan(self, node: Node, index: Index) -> Expr:
        source, space = node.inputs[0], self.space
        fits = source.shape == space.outer + space.inner and node.data == len(space.inner)
        if not fits or index != space.index or isinstance(space, SegmentSpace):
            raise Cut(node)
        return self.table.scan(node.fn, self.at(source, index), node.name)

    def _reduce_segmented(self, node: Node, index: Index, space: SegmentSpace) -> Expr:
        source = node.inputs[0]
        if node.data == 1 and index == space.outer_index and source.shape == space.row_shape:
            return self.table.reduce(node.fn, self.at(source, space.row_index), node.name)
        if node.data == 1 and index == space.segment_index and source.shape == space.outer + space.inner:
            return self.table.segment(node.fn, self.at(source, space.index), node.name)
        raise Cut(node)

    def _cat(self, node: Node, index: Index) -> Expr:
        dimension = node.data
        position, bounds, parts = self._loops_only(index[dimension]), [self.space.zero], []
        for part in node.inputs:
            start = bounds[-1]
            end = start + part.shape[dimension]
            if not position.terms and start.at_most(position.const) and position.const.less(end):
                inside = Affine.of(position.const - start)
                return self.at(part, (*index[:dimension], inside, *index[dimension + 1 :]))
            shifted = position.shifted(self.space.zero - start) if not start.equals(0) else position
            parts.append(self.at(part, (*index[:dimension], shifted, *index[dimension + 1 :])))
            bounds.append(start + part.shape[dimension])
        return self.table.cat(position, tuple(bounds), tuple(parts))

    def _gather(self, node: Node, index: Index) -> Expr:
        """Evaluate the source at a computed index, which becomes a variable of the loads below."""
        source, chooser = node.inputs
        picked = self.at(chooser, self._broadcast(chooser, index))
        variable = f"at_{chooser.name}_{picked.number}"
        self._chosen[variable] = picked
        self.space.extents.setdefault(variable, source.shape[node.data])
        position = Affine.of(self.space.zero, {variable: self.space.one})
        return self.at(source, (*index[: node.data], position, *index[node.data + 1 :]))

    def _padded(self, node: Node, index: Index) -> Expr:
        """Evaluate what is inside, which has to be in memory, where the index is inside."""
        source, (before, value) = node.inputs[0], node.data
        places = tuple(self._loops_only(p).shifted(self.space.zero - b) for p, b in zip(index, before, strict=True))
        inner = self.at(source, places)
        if inner.op != "load" or inner.data[2]:
            raise Cut(source)
        framed = zip(places, source.shape, node.shape, strict=True)
        inside = tuple((place, extent) for place, extent, whole in framed if extent != whole)
        return self.table.padded(inner.data[0], inner.data[1], inside, value)

    def _load(self, node: Node, offset: Affine) -> Expr:
        names = [v for v, _ in offset.terms if v in self._chosen]
        chosen = tuple((v, self.space.extents[v]) for v in names)
        return self.table.load(node, offset, chosen, tuple(self._chosen[v] for v in names))

    def _loops_only(self, position: Affine) -> Affine:
        if any(v in self._chosen for v, _ in position.terms):
            raise Unsupported("a gathered index that is used as a number")
        return position

    # ---- views

    def _viewed(self, node: Node, index: Index) -> Expr:
        source = node
        while source.kind == "view" and source.fn == "reshape" and not (source is not node and self.stored(source)):
            source = source.inputs[0]
        if source is not node and (source.kind in (*HEADS, "library", "item") or self.stored(source)):
            return self._load(source, linear(index, node.shape, self.space.one))
        try:
            index = self.view(node, index)
        except Unsupported as problem:
            raise Cut(node.inputs[0]) from problem
        return self.at(node.inputs[0], index)

    def view(self, node: Node, index: Index) -> Index:
        """Return the index into the viewed node."""
        source, space = node.inputs[0], self.space
        if node.fn == "permute":
            result = [index[0]] * source.rank
            for position, dimension in zip(index, node.data, strict=True):
                result[dimension] = position
            return tuple(result)
        if node.fn == "expand":
            return self._broadcast(source, index)
        if node.fn == "slice":
            dimension, start, step = node.data
            position = index[dimension].scaled(Size.literal(step, space.one)) if step != 1 else index[dimension]
            return (*index[:dimension], position.shifted(start), *index[dimension + 1 :])
        return self.reshaped(node.shape, source.shape, index)

    def reshaped(self, new: Sequence[Size], old: Sequence[Size], index: Index) -> Index:
        """Return where an element of a tensor of shape `new` is in the same one of shape `old`.

        Match groups of dimensions with equal products; within a group go through the linear offset."""
        one, zero = self.space.one, Affine.of(self.space.zero)
        fresh = [(s, p) for s, p in zip(new, index, strict=True) if not s.equals(1)]
        wanted = [s for s in old if not s.equals(1)]
        found: list[Affine] = []
        a = b = 0
        while a < len(fresh) or b < len(wanted):
            if a >= len(fresh) or b >= len(wanted):
                raise Unsupported("a reshape of sizes that are not understood")
            a_end, b_end = a + 1, b + 1
            left, right = fresh[a][0], wanted[b]
            while left != right:
                if left.at_most(right) and a_end < len(fresh):
                    left, a_end = left * fresh[a_end][0], a_end + 1
                elif right.at_most(left) and b_end < len(wanted):
                    right, b_end = right * wanted[b_end], b_end + 1
                else:
                    raise Unsupported("a reshape of sizes that are not understood")
            offset = linear(tuple(p for _, p in fresh[a:a_end]), [s for s, _ in fresh[a:a_end]], one)
            found += self._split(offset, wanted[b:b_end])
            a, b = a_end, b_end
        rest = iter(found)
        return tuple(zero if s.equals(1) else next(rest) for s in old)

    def _split(self, offset: Affine, shape: Sequence[Size]) -> list[Affine]:
        """Split an offset into an index. Raise Unsupported where that needs a division at run time."""
        result = []
        for stride in strides(shape, self.space.one)[:-1]:
            whole: dict[str, Size] = {}
            rest: dict[str, Size] = {}
            for variable, coefficient in offset.terms:
                if coefficient.divisible(stride):
                    whole[variable] = coefficient // stride
                else:
                    rest[variable] = coefficient
            constant = offset.const // stride
            left = Affine.of(offset.const - constant * stride, rest)
            if not self._largest(left).less(stride):
                raise Unsupported("a reshape that needs a division")
            result.append(Affine.of(constant, whole))
            offset = left
        return [*result, offset]

    def _largest(self, position: Affine) -> Size:
        total = position.const
        for variable, coefficient in position.terms:
            total = total + coefficient * (self.space.extents[variable] - 1)
        return total
