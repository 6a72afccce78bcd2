"""Skinny products: several matrix products of the same few rows in one pass over the weights, with an epilogue.

The rows are too few to fill a tensor core's tile by themselves, so the kernel is bound by reading the weights: narrow
tiles of columns, long steps along the depth, and enough programs for every multiprocessor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synthesis.blocks.block import MATMULS, Code, base, compute
from synthesis.blocks.tile import Pen, Tile, attempt, covers, evaluate, reads, symbols, walk, whole
from synthesis.expr import COSTLY, Expr
from synthesis.graph.nodes import FLOATS, Node
from synthesis.graph.sizes import Size, product
from synthesis.host import Host
from synthesis.index import linear

MOST_ROWS = 64
LINEAR = ("aten.linear.default", "aten.addmm.default")
TUNABLES = {
    "COLUMNS": [64, 32, 16, 128],  # columns of a program, at most
    "DEPTH": [256, 128, 512, 64],  # elements of each weight's row in a step
    "FILL": [128, 256, 512, 64],  # programs, at least, before columns are fewer
    "PRODUCT_WARPS": [4, 8, 2],
    "PRODUCT_STAGES": [4, 3, 5, 2],
}
VECTOR_TUNABLES = {
    "LANES": [8, 4, 16, 2],  # columns of a program where there is one row
    "VECTOR_DEPTH": [1024, 512, 2048],
    "VECTOR_WARPS": [4, 8, 2],
    "VECTOR_STAGES": [3, 2, 4],
    "VECTOR": [1, 0],  # one row: sums in place of a tensor core's product
}


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


def operands(node: Node, one: Size) -> Operands | None:
    """Return the operands of a library call that is a product of few rows, else None."""
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
    if b.rank != 2 or a.rank < 2 or max(rows.values) > MOST_ROWS or min(rows.values) < 1 or node.dtype == "mixed":
        return None
    if min(node.shape[-1].values) < 16 or min(a.shape[-1].values) < 16:
        return None
    return Operands(node, a, b, bias, node.fn != "aten.linear.default")


def use_product(root: Node, users: Callable[[Node], list[Node]], one: Size) -> bool:
    """Let a block compute `root`: a product, or an element-wise result of products that nobody else uses.

    Return whether there is such a block.
    """
    if root.kind not in ("pointwise", "library"):
        return False
    cone = _cone(root)
    found = [o for n in cone if (o := operands(n, one)) is not None]
    inside = {id(n) for n in cone}
    if not found or any(id(u) not in inside for n in cone if n is not root for u in users(n)):
        return False
    block = _fit(root, found, one)
    if block is None:
        return False
    compute(root, block, reads([block.a, *block.b, block.out, *block.given_biases], block.products))
    return True


def _cone(root: Node) -> list[Node]:
    """Return what an element-wise result is computed from, down to products and what is in memory."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in found or node.kind in ("input", "parameter", "buffer", "constant", "reduce", "gather", "cat"):
            return
        found[id(node)] = node
        if node.kind != "library":
            for child in node.inputs:
                visit(child)

    visit(root)
    return list(found.values())


def _fit(root: Node, found: list[Operands], one: Size) -> Product | None:
    first = found[0]
    if any(o.a is not first.a or o.node.shape != first.node.shape or o.transposed != first.transposed for o in found):
        return None
    if root.shape != first.node.shape:
        return None
    rows = product(first.node.shape[:-1], one)
    if len(first.node.shape) != 2 and sum(not s.equals(1) for s in first.node.shape[:-1]) > 1:
        return None  # more than one dimension of rows

    def index(tile: Tile, node: Node) -> tuple[object, ...]:
        zero = one - 1
        lead = [tile.at["m"] if not s.equals(1) else tile.at["m"].of(zero) for s in node.shape[:-1]]
        return (*lead, tile.column)

    def a_at(leaves: list[Node]) -> Expr:
        tile = Tile({"m": rows}, first.depth, one)
        return evaluate(tile, first.a, index(tile, first.a), leaves)  # type: ignore[arg-type]

    a = attempt(lambda: a_at([]))
    if a is None or any(e.op in COSTLY or e.op in ("reduce", "cat") for e in walk([a])):
        a = attempt(lambda: a_at([base(first.a)]))
    if a is None or not a.full:
        return None
    b: list[Expr] = []
    for o in found:
        tile = Tile({"n": first.columns}, first.depth, one)
        order = (tile.column, tile.at["n"]) if o.transposed else (tile.at["n"], tile.column)
        value = attempt(lambda o=o, tile=tile, order=order: evaluate(tile, o.b, order))  # type: ignore[misc]
        if value is None or not covers(value, frozenset({"n"})):
            return None
        b.append(value)
    tile = Tile({"m": rows}, first.columns, one)
    products = [o.node for o in found]
    out = attempt(lambda: evaluate(tile, root, index(tile, root), products))  # type: ignore[arg-type]
    if out is None or any(e.op == "reduce" for e in walk([out])):
        return None
    biases = [None if o.bias is None else _bias(o.bias, first.columns, one) for o in found]
    if any(o.bias is not None and e is None for o, e in zip(found, biases, strict=True)):
        return None
    return Product(root, found, rows, a, b, out, biases, one)


def _bias(bias: Node, columns: Size, one: Size) -> Expr | None:
    tile = Tile({}, columns, one)
    return attempt(lambda: evaluate(tile, bias, (tile.column,))) if bias.rank == 1 else None


@dataclass(slots=True)
class Product:
    """The expressions of a product's tiles."""

    root: Node
    found: list[Operands]
    rows: Size
    a: Expr
    b: list[Expr]
    out: Expr
    biases: list[Expr | None]
    one: Size
    title: str = "product"

    @property
    def given_biases(self) -> list[Expr]:
        return [b for b in self.biases if b is not None]

    @property
    def products(self) -> list[Node]:
        return [o.node for o in self.found]

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        first = self.found[0]
        exprs = [self.a, *self.b, self.out, *self.given_biases]
        loads = reads(exprs, self.products)
        sizes = symbols(exprs, [self.rows, first.columns, first.depth])
        name = f"product_{node.name}"
        single = min(self.rows.values) == 1
        pieces: set[str] = set()
        kernels = [self._kernel(name, loads, sizes, pieces, vector=False)]
        if single:
            kernels.append(self._kernel(f"{name}_of_one_row", loads, sizes, pieces, vector=True))
        arguments = [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        rows, columns, depth = (host.size(s) for s in (self.rows, first.columns, first.depth))
        listed = f"({', '.join(arguments)},), ({', '.join(sizes)}{',' if sizes else ''})"
        kind = f"_TYPES[{host.dtype(first.a.dtype)}]"
        call = f"_product({name}, {out}, {rows}, {columns}, {depth}, {len(self.found)}, {listed}, {kind})"
        if single:
            host.lines += [f'if {rows} == 1 and CONFIG["VECTOR"]:']
            host.lines += [f"    _vector({name}_of_one_row, {out}, {columns}, {depth}, {listed}, {kind})", "else:"]
            call = f"    {call}"
        host.lines.append(call)
        launches = {"product": LAUNCH, **({"vector": VECTOR_LAUNCH} if single else {})}
        return Code(kernels, launches, {**TUNABLES, **(VECTOR_TUNABLES if single else {})}, pieces)

    def _kernel(self, name: str, loads: list[Node], sizes: list[str], pieces: set[str], *, vector: bool) -> str:
        first = self.found[0]
        exact = self.root.dtype == "float32"
        lines: list[str] = []
        used = {*sizes, "m", "n", "j", "start", "a", "zero", "out", "program", *(f"{x.name}_ptr" for x in loads)}
        totals = [f"total_{i}" for i in range(len(self.found))]
        used |= set(totals)
        rows, columns, depth = whole(self.rows), whole(first.columns), whole(first.depth)

        writer = Pen(exact, used, lines, pieces).writer
        lines += [
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    m = tl.arange(0, ROWS)[:, None] + tl.program_id(1) * ROWS",
            f"    row_inside = m < {rows}",
            "    n = tl.program_id(0).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[:, None]",
            f"    n = tl.minimum(n, {columns} - 1)",
        ]
        shape = "[COLUMNS, DEPTH]" if vector else "[ROWS, COLUMNS]"
        lines += [f"    {t} = tl.zeros({shape}, tl.float32)" for t in totals]
        loop = f"tl.range(0, {depth}, DEPTH, num_stages=STAGES)" if vector else f"range(0, {depth}, DEPTH)"
        lines += [f"    for start in {loop}:", "        j = start + tl.arange(0, DEPTH)[None, :]"]
        lines += [f"        column_inside = j < {depth}", "        inside = row_inside & column_inside"]
        w = writer({"m"}, "        ")
        if vector:
            a = w.value(self.a)
        else:
            a = w.operand(self.a, "a")
            if not covers(self.a, frozenset({"m"})):
                a = w.assign("a", f"tl.broadcast_to({a}, [ROWS, DEPTH])")
        for total, b in zip(totals, self.b, strict=True):
            # A weight's row that is beyond the last is the last once more: no mask along the rows.
            own = writer({"n"}, "        ", masks=("column_inside", "", "column_inside"))
            if vector:
                lines.append(f"        {total} += {own.value(b)} * {a}")
            else:
                tile = own.operand(b, "b")
                lines.append(f'        {total} = tl.dot({a}, tl.trans({tile}), {total}, input_precision="ieee")')
        if vector:
            lines += [f"    {t} = tl.sum({t}, axis=1)[None, :]" for t in totals]
        lines += [
            "    j = tl.program_id(0).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
            f"    column_inside = j < {columns}",
            "    inside = row_inside & column_inside",
        ]
        for total, bias in zip(totals, self.biases, strict=True):
            if bias is not None:
                lines.append(f"    {total} += {writer({'m'}, '    ').value(bias)}")
        given = dict(zip(map(id, self.products), totals, strict=True))
        value = writer({"m"}, "    ", given=given).value(self.out)
        held = Tile({"m": self.rows}, first.columns, self.one)
        place = linear((held.at["m"], held.column), (self.rows, first.columns), self.one)
        row = f"m * {columns}" if place.coefficient("m") is not None else "m * 0"
        lines.append(f"    tl.store(out_ptr + ({row}) + j, {value}, mask=inside)")
        pointers = [*(f"{x.name}_ptr" for x in loads), "out_ptr"]
        constants = ["ROWS", "COLUMNS", "DEPTH", "STAGES", "INDEX", "TYPE"]
        parameters = ", ".join([*pointers, *sizes, *(f"{c}: tl.constexpr" for c in constants)])
        return "\n".join(["@triton.jit", f"def {name}({parameters}):", *lines])


LAUNCH = '''
def _product(kernel, out, rows, columns, depth, count, tensors, sizes, kind):
    """Fewer columns a program until there are FILL programs; as many stages as fit the shared memory."""
    together = min(64, max(16, triton.next_power_of_2(rows)))
    step = min(CONFIG["DEPTH"], max(16, triton.next_power_of_2(depth)))
    width = CONFIG["COLUMNS"]
    while width > 16 and triton.cdiv(columns, width) * triton.cdiv(rows, together) < CONFIG["FILL"]:
        width //= 2
    bytes_of_stage = (width * count + together) * step * max(2, out.element_size())
    stages = max(1, min(CONFIG["PRODUCT_STAGES"], 180000 // bytes_of_stage + 1))
    constants = {"ROWS": together, "COLUMNS": width, "DEPTH": step, "STAGES": stages, "INDEX": _index(tensors)}
    grid = (triton.cdiv(columns, width), triton.cdiv(rows, together))
    options = {"num_warps": CONFIG["PRODUCT_WARPS"], "num_stages": stages}
    kernel[grid](*tensors, out, *sizes, **constants, TYPE=kind, **options)
'''

VECTOR_LAUNCH = '''
def _vector(kernel, out, columns, depth, tensors, sizes, kind):
    """One row: every program sums a few columns."""
    step = min(CONFIG["VECTOR_DEPTH"], max(16, triton.next_power_of_2(depth)))
    stages = max(1, min(CONFIG["VECTOR_STAGES"], 180000 // (CONFIG["LANES"] * step * 4) + 1))
    constants = {"ROWS": 1, "COLUMNS": CONFIG["LANES"], "DEPTH": step, "STAGES": stages, "INDEX": _index(tensors)}
    grid = (triton.cdiv(columns, CONFIG["LANES"]), 1)
    kernel[grid](*tensors, out, *sizes, **constants, TYPE=kind, num_warps=CONFIG["VECTOR_WARPS"])
'''
