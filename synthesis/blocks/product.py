"""Skinny products: several matrix products of the same few rows in one pass over the weights.

What surrounds them moves to where it costs least: a norm's statistics are summed with the product and scale its
result, scales of weights do too, a low-rank term is one more product of the same pass, and weights of 8 or 4 bits
become operands in registers. `multiply` writes the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from synthesis.blocks.block import MATMULS, Code, base, compute
from synthesis.blocks.factors import same, split, sums_inside
from synthesis.blocks.large import write_large
from synthesis.blocks.multiply import write_product
from synthesis.blocks.tile import Tile, attempt, covers, evaluate, reads, walk
from synthesis.expr import COSTLY, Expr, Table
from synthesis.graph.nodes import FLOATS, HEADS, Node
from synthesis.graph.sizes import Affine, Size, product
from synthesis.host import Host
from synthesis.index import Index

MOST_ROWS, MOST_RANK = 64, 64
GROUPS = (32, 64, 128, 256, 512)  # elements of the depth that share a scale
BYTES = {"float32": 4, "int32": 4, "int8": 1, "uint8": 1}  # other dtypes: 2
LINEAR = ("aten.linear.default", "aten.addmm.default")


@dataclass(slots=True)
class Operands:
    """One product: the rows' operand, the weight's (read as [columns, depth] or its transpose), and a bias."""

    node: Node
    a: Node
    b: Node
    bias: Node | None
    transposed: bool  # b is (depth, columns)

    @property
    def depth(self) -> Size:
        return self.a.shape[-1]

    @property
    def columns(self) -> Size:
        return self.node.shape[-1]


@dataclass(frozen=True, slots=True)
class Steps:
    """A product's way along its depth: `parts` neighbouring elements come from as many expressions of the weight
    (two of 4 bits in a byte); a step is one `group` where there are groups, else any number of elements."""

    parts: int
    group: Size | None


@dataclass(slots=True)
class Rows:
    """The rows' operand: `value` for each element and, where it is normalised, `scale` for each row, a value of sums
    over the depth."""

    value: Expr
    scale: Expr | None


@dataclass(slots=True)
class Weight:
    """A weight: its parts along the depth, what scales a whole column (or a column's group), and the bias."""

    parts: list[Expr]
    scale: Expr | None
    bias: Expr | None


@dataclass(slots=True)
class Low:
    """A low-rank term: the first weight, then what becomes of its product, and the second weight."""

    node: Node
    rank: Size
    down: Expr
    value: Expr
    up: Expr


@dataclass(slots=True)
class Product:
    """The expressions of a product's tiles. `products` are the nodes that `out` is computed from."""

    root: Node
    a: Node
    columns: Size
    rows: Size
    steps: Steps
    operand: Rows
    weights: list[Weight]
    low: Low | None
    products: list[Node]
    out: Expr
    one: Size
    more: list[tuple[Node, Expr]]  # what is stored beside `root`, of its shape
    title: str = "product"

    @property
    def depth(self) -> Size:
        return self.a.shape[-1]

    def exprs(self) -> list[Expr]:
        """Return every value that the kernel computes."""
        found = [self.operand.value, self.operand.scale, self.out, *(value for _, value in self.more)]
        for weight in self.weights:
            found += [*weight.parts, weight.scale, weight.bias]
        if self.low is not None:
            found += [self.low.down, self.low.value, self.low.up]
        return [e for e in found if e is not None]

    @property
    def large(self) -> bool:
        """Return true if there are many rows."""
        return min(self.rows.values) > MOST_ROWS

    @property
    def single(self) -> bool:
        """Return true if there may be one row, which is then summed without a tensor core."""
        plain = self.steps.parts == 1 and self.steps.group is None and self.low is None
        return plain and min(self.rows.values) == 1

    @property
    def width(self) -> int:
        """The bytes of all weights that belong to one column and one step along the depth."""
        parts = [e for weight in self.weights for part in weight.parts for e in walk([part])]
        loads = [e for e in parts if e.op == "load" and e.full and any(v == "n" for v, _ in e.data[1].terms)]
        found = {id(e.data[0]): e.data[0] for e in loads}
        return sum(BYTES.get(node.dtype, 2) for node in found.values())

    def loads(self) -> list[Node]:
        return reads(self.exprs(), [*self.products, *([self.low.node] if self.low else [])])

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        return write_large(self, host, node) if self.large else write_product(self, host, node)


@dataclass(slots=True)
class Beside:
    """A value that the block of another node stores, too."""

    title: str = "product"

    def write(self, host: Host, node: Node) -> Code:
        """Write nothing: the other block did."""
        assert id(node) in host.names
        return Code([], {}, {})


def operands(node: Node, one: Size, least: int = 16) -> Operands | None:
    """Return the operands of a library call that is a product of few rows, or of many in float32, else None."""
    if node.kind != "library" or node.fn not in (*MATMULS, *LINEAR) or node.dtype not in FLOATS:
        return None
    args, kwargs = node.data
    if kwargs:
        return None
    bias = None
    if node.fn == "aten.addmm.default":
        bias, args = args[0], args[1:]
    elif node.fn == "aten.linear.default" and len(args) > 2:
        bias = args[2]
    a, b = args[:2]
    rows = product(node.shape[:-1], one)
    if b.rank != 2 or a.rank < 2 or min(rows.values) < 1 or node.dtype == "mixed":
        return None
    if max(rows.values) > MOST_ROWS and (node.dtype != "float32" or min(rows.values) <= MOST_ROWS):
        return None
    if min(node.shape[-1].values) < least or min(a.shape[-1].values) < least:
        return None
    return Operands(node, a, b, bias, node.fn != "aten.linear.default")


def use_product(
    root: Node, users: Callable[[Node], list[Node]], one: Size, *, low_rank: bool = False, norms_apart: bool = False
) -> bool:
    """Let a block compute `root`: a product, or an element-wise result of products that have no other use.

    With `low_rank` only where one of them is a low-rank term. With `norms_apart` a normalised operand is read from
    memory. Return whether there is such a block.
    """
    if root.kind not in ("pointwise", "library"):
        return False
    cone = cone_of(root)
    found = [o for n in cone if (o := operands(n, one, 1 if low_rank else 16)) is not None]
    low = _low_rank(found, users, one) if low_rank else None
    if not found or (low_rank and low is None):
        return False
    kept = _also_read(root, cone, found, users)
    if kept is None or (kept and low is not None):
        return False
    outer = [o for o in found if low is None or o.node is not low[0].node]
    block = _fit(root, outer, low, one, norms_apart, kept)
    if block is None:
        return False
    compute(root, block, block.loads())
    for node in kept:
        compute(node, Beside(), [root])
    return True


def _also_read(
    root: Node, cone: list[Node], found: list[Operands], users: Callable[[Node], list[Node]]
) -> list[Node] | None:
    """Return the values that others read as well as `root`: at most one, a recurrence's state; None where there is
    anything else that others read."""
    inside, products = {id(n) for n in cone}, {id(o.node) for o in found}
    computed = [n for n in cone if n is not root and (base(n).kind == "pointwise" or id(base(n)) in products)]
    read = [n for n in computed if any(id(u) not in inside for u in users(n))]
    fits = len(read) <= 1 and all(n.kind == "pointwise" and n.shape == root.shape for n in read)
    return read if fits else None


def cone_of(root: Node) -> list[Node]:
    """Return the nodes that an element-wise result is computed from, down to products and tensors in memory."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in found or node.kind in (*HEADS, "item", "constant", "reduce", "gather", "cat"):
            return
        found[id(node)] = node
        if node.kind != "library":
            for child in node.inputs:
                visit(child)

    visit(root)
    return list(found.values())


def _low_rank(
    found: list[Operands], users: Callable[[Node], list[Node]], one: Size
) -> tuple[Operands, Operands] | None:
    """Return the two products of a low-rank term (the outer one first) among products that are added."""
    for outer in found:
        inner = [o for n in cone_of(outer.a) if (o := operands(n, one, 1)) is not None]
        mates = [o for o in found if o is not outer]
        if len(inner) != 1 or not mates or any(inner[0].a is not mate.a for mate in mates) or inner[0].bias is not None:
            continue
        known = {id(n) for n in (outer.node, *cone_of(outer.a))}
        alone = all(id(u) in known for n in cone_of(outer.a) for u in users(n))
        if alone and outer.bias is None and 1 <= max(inner[0].columns.values) <= MOST_RANK:
            return outer, inner[0]
    return None


def _fit(
    root: Node,
    found: list[Operands],
    low: tuple[Operands, Operands] | None,
    one: Size,
    norms_apart: bool,
    kept: list[Node],
) -> Product | None:
    first = found[0]
    if any(o.a is not first.a or o.node.shape != first.node.shape or o.transposed != first.transposed for o in found):
        return None
    lead = [s for s in first.node.shape[:-1] if not s.equals(1)]
    if root.shape != first.node.shape or (len(first.node.shape) != 2 and len(lead) > 1):
        return None  # more than one dimension of rows
    rows = product(first.node.shape[:-1], one)
    large = min(rows.values) > MOST_ROWS
    if large and (len(found) > 1 or low is not None or kept):
        return None
    for steps in _steps(found):
        weights = [_weight(o, steps, one) for o in found]
        operand = _operand(first, rows, steps, one, norms_apart or large)
        if operand is not None and all(weights) and not (large and steps != Steps(1, None)):
            break
    else:
        return None
    term = None if low is None else _low(*low, rows, one)
    if low is not None and (term is None or steps.parts > 1 or steps.group is not None):
        return None
    products = [o.node for o in found] + ([low[0].node] if low else [])
    tile, table = Tile({"m": rows}, first.columns, one), Table()
    values = []
    for node in (root, *kept):
        value = attempt(lambda n=node: evaluate(tile, n, _index(tile, n, tile.column), products, table))  # type: ignore[misc]
        if value is None or any(e.op == "reduce" for e in walk([value])):
            return None
        values.append(value)
    out, more = values[0], list(zip(kept, values[1:], strict=True))
    weights_found = [w for w in weights if w]
    return Product(root, first.a, first.columns, rows, steps, operand, weights_found, term, products, out, one, more)


def _steps(found: list[Operands]) -> Iterator[Steps]:
    """Yield ways to go along the depth: any steps, then those that packed weights and groups ask for."""
    yield Steps(1, None)
    depth, parts, groups = found[0].depth, {1}, dict[tuple[int, ...], Size]()
    for node in (n for o in found for n in _inside(o.b)):
        if node.kind == "cat" and node.data == node.rank - 1 and all(i.shape[-1].equals(1) for i in node.inputs):
            parts.add(len(node.inputs))
        if node.rank and node.shape[-1].values[0] in GROUPS and len(set(node.shape[-1].values)) == 1:
            groups[node.shape[-1].values] = node.shape[-1]
    for count in sorted(parts & {1, 2}, reverse=True):
        for group in (None, *groups.values()):
            if group is None or depth.divisible(group):
                yield Steps(count, group)


def _inside(root: Node) -> list[Node]:
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in found:
            found[id(node)] = node
            for child in node.inputs if node.kind in ("pointwise", "view", "cat") else ():
                visit(child)

    visit(root)
    return list(found.values())


def _index(tile: Tile, node: Node, column: Affine) -> Index:
    zero = Affine.of(tile.zero)
    return (*(zero if s.equals(1) else tile.at["m"] for s in node.shape[:-1]), column)


def _along(row: str, extent: Size, depth: Size, steps: Steps, part: int | None, one: Size) -> tuple[Tile, Affine]:
    """Return a tile of rows along the depth, and the place in the depth of its columns: of one part, or of all."""
    group = steps.group
    width = depth if group is None else group
    columns = width if part is None else width // steps.parts
    tile = Tile({row: extent, **({} if group is None else {"g": depth // group})}, columns, one)
    place = tile.column
    if part is not None and steps.parts > 1:
        place = place.scaled(one * steps.parts).shifted(one - 1 + part)
    return tile, place if group is None else place + tile.at["g"].scaled(group)


def _operand(first: Operands, rows: Size, steps: Steps, one: Size, norms_apart: bool) -> Rows | None:
    tile, place = _along("m", rows, first.depth, steps, None, one)

    def at(leaves: list[Node], table: Table) -> Expr:
        return evaluate(tile, first.a, _index(tile, first.a, place), leaves, table)

    table = Table()
    value = attempt(lambda: at([], table))
    if value is not None and value.full:
        sums = sums_inside(value)
        if not any(e.op in COSTLY or e.op == "cat" for e in walk([value])) and not sums:
            return Rows(value, None)
        inner, scale = split(value, table)
        simple = all(e.data == "sum" and not sums_inside(e.args[0]) for e in sums)
        simple = simple and not norms_apart
        if sums and inner is not None and simple and not sums_inside(inner) and steps == Steps(1, None):
            return Rows(inner, scale)
    value = attempt(lambda: at([base(first.a)], Table()))
    return None if value is None or not value.full else Rows(value, None)


def _weight(o: Operands, steps: Steps, one: Size, row: str = "n") -> Weight | None:
    parts, scales, rows = [], [], frozenset({row})
    for part in range(steps.parts):
        tile, place = _along(row, o.columns, o.depth, steps, part, one)
        order = (place, tile.at[row]) if o.transposed else (tile.at[row], place)
        table = Table()
        value = attempt(lambda t=tile, order=order, table=table: evaluate(t, o.b, order, (), table))  # type: ignore[misc]
        if value is None or not covers(value, rows):
            return None
        inner, scale = split(value, table)
        if inner is None or not covers(inner, rows):
            inner, scale = value, None
        parts.append(inner)
        scales.append(scale)
    if any(not same(scale, scales[0]) for scale in scales):
        return None
    bias = None if o.bias is None else _bias(o.bias, o.columns, one)
    return None if o.bias is not None and bias is None else Weight(parts, scales[0], bias)


def _bias(bias: Node, columns: Size, one: Size) -> Expr | None:
    tile = Tile({}, columns, one)
    return attempt(lambda: evaluate(tile, bias, (tile.column,))) if bias.rank == 1 else None


def _low(outer: Operands, inner: Operands, rows: Size, one: Size) -> Low | None:
    """Return a low-rank term: the inner product's weight along the depth, the outer one's along the rank."""
    rank = inner.columns
    down = _weight(inner, Steps(1, None), one, "r")
    up = _weight(outer, Steps(1, None), one)
    tile = Tile({"m": rows}, rank, one)
    value = attempt(lambda: evaluate(tile, outer.a, _index(tile, outer.a, tile.column), [inner.node]))
    if down is None or up is None or value is None or sums_inside(value):
        return None
    if down.scale is not None or up.scale is not None:
        return None
    return Low(inner.node, rank, down.parts[0], value, up.parts[0])
