"""Float32 products of many rows on tensor cores, as exact as float32's own.

Each operand is a number of TF32 and its rest, another one: three products of TF32 make one of float32 ("tf32x3"). The
sum leaves the tensor core after every step. There it would be cut at each addition, and over a long depth all cuts go
towards zero; outside it is rounded.

The second operand of a tensor core lies in shared memory along the depth. Where neighbours of the weights are columns,
the transposed product is computed: then the weights are the first operand, which may come from registers. Where both
operands lie across the depth, one is copied.

Programs share a long depth, and a second kernel adds their sums: one sum of so many numbers would be rounded too often.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from synthesis.blocks.block import Code, tuple_of
from synthesis.blocks.factors import renamed
from synthesis.blocks.tile import Pen, Tile, symbols, walk, whole
from synthesis.expr import INNER, Expr, Table
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Affine
from synthesis.host import Host
from synthesis.index import linear

if TYPE_CHECKING:
    from synthesis.blocks.product import Product

TUNABLES = {
    "TILE_ROWS": [128, 64, 256],
    "TILE_COLUMNS": [128, 64, 256],
    "TILE_DEPTH": [32, 64, 16],
    "TILE_WARPS": [8, 4],
    "TILE_STAGES": [3, 4, 2],
    "TILE_GROUP": [8, 16, 4],  # tiles of rows whose programs follow each other, so that weights stay in the cache
}
NAMES = (
    "m n j c tile first height by_row by_column start column_inside row_inside c_inside n_inside b_inside inside zero"
    " product total across down begin end part rows_of_sums"
)
LONG, DEEP = 16384, 4096  # a depth that programs share; one that they share where tiles are few
FEW_TILES = 66  # of 128 x 128: half the processors of a large GPU

LAUNCH = '''
def _large(kernel, out, rows, columns, depth, tensors, sizes):
    """One tile of the result for each program, no larger than the result; as many stages as fit the shared memory."""
    tall, wide = CONFIG["TILE_ROWS"], CONFIG["TILE_COLUMNS"]
    while tall > 64 and tall >= 2 * rows:
        tall //= 2
    while wide > 16 and wide >= 2 * columns:
        wide //= 2
    warps = CONFIG["TILE_WARPS"]
    while tall * wide > 128 * 32 * warps:
        warps *= 2  # 128 registers of a thread for the result, at most
    step = min(CONFIG["TILE_DEPTH"], max(16, triton.next_power_of_2(depth)))
    room = 225000 - 8 * max(tall, wide) * step  # of shared memory, beside both parts of the second operand
    stages = max(1, min(CONFIG["TILE_STAGES"], 1 + room // (4 * (tall + wide) * step)))
    constants = {"ROWS": tall, "COLUMNS": wide, "DEPTH": step, "GROUP": CONFIG["TILE_GROUP"]}
    constants |= {"EVEN": depth % step == 0, "INDEX": _index((*tensors, out)), "TYPE": tl.float32}
    grid = (triton.cdiv(rows, tall) * triton.cdiv(columns, wide),)
    kernel[grid](*tensors, out, *sizes, **constants, num_warps=warps, num_stages=stages)
'''
SHARED = LAUNCH.replace("_large(kernel, out", "_large_shared(kernel, join, out").replace(
    "    kernel[grid](*tensors, out, *sizes, **constants, num_warps=warps, num_stages=stages)\n",
    """    parts = max(1, min(_processors(out.device) // grid[0], depth // 512))
    parts *= triton.cdiv(triton.cdiv(depth, 8192), parts)  # more additions one after the other round too often
    piece = triton.cdiv(triton.cdiv(depth, parts), step) * step
    parts, sums = triton.cdiv(depth, piece), out
    if parts > 1:
        sums = torch.empty((parts, rows, columns), dtype=torch.float32, device=out.device)
        constants["INDEX"] = _index((*tensors, out, sums))
    options = {"SPLIT": parts > 1, "num_warps": warps, "num_stages": stages}
    kernel[(*grid, parts)](*tensors, out, sums, *sizes, piece, **constants, **options)
    if parts > 1:
        grid = (triton.cdiv(rows, 8), triton.cdiv(columns, 128))
        join[grid](*tensors, out, sums, *sizes, parts, ROWS=8, COLUMNS=128, INDEX=constants["INDEX"])
""",
)


def write_large(block: Product, host: Host, node: Node) -> Code:
    """Write the kernels of a product of many rows, and their launch into `host`."""
    block = _in_rows(block, host)
    loads = block.loads()
    sizes = symbols(block.exprs(), [block.rows, block.columns, block.depth])
    name, shared = f"product_{node.name}", _is_shared(block)
    pointers = [*(f"{x.name}_ptr" for x in loads), "out_ptr", *(["sums_ptr"] if shared else [])]
    constants = ["ROWS", "COLUMNS", "DEPTH", "GROUP", "EVEN", "INDEX", "TYPE", *(["SPLIT"] if shared else [])]
    pen = Pen(True, {*sizes, *NAMES.split(), *pointers})
    pen.lines += _signature(name, [*pointers, *sizes, *(["piece"] if shared else [])], constants)
    pen.lines += _head(whole(block.rows), whole(block.columns), whole(block.depth), shared)
    _loop(block, pen, shared)
    _finish(block, pen, shared)
    texts, pieces = ["\n".join(pen.lines)], pen.pieces
    if shared:
        pen = Pen(True, {*sizes, *NAMES.split(), *pointers})
        pen.lines += _signature(f"join_{name}", [*pointers, *sizes, "parts"], ["ROWS", "COLUMNS", "INDEX"])
        _join(block, pen)
        texts.append("\n".join(pen.lines))
        pieces |= pen.pieces
    arguments = [host.contiguous(n) for n in loads]
    out = host.allocate(node, host.device())
    host.used_symbols |= set(sizes)
    rows, columns, depth = (host.size(s) for s in (block.rows, block.columns, block.depth))
    listed = f"{tuple_of(arguments)}, {tuple_of(sizes)}"
    launch = f"_large_shared({name}, join_{name}" if shared else f"_large({name}"
    host.lines.append(f"{launch}, {out}, {rows}, {columns}, {depth}, {listed})")
    return Code(texts, {"large_shared": SHARED} if shared else {"large": LAUNCH}, dict(TUNABLES), pieces)


def _in_rows(block: Product, host: Host) -> Product:
    """Return the product with a copy of its first operand along the depth, where both operands lie across it.

    One of them would be turned in every step, which takes longer than all else.
    """
    value, rows, depth = block.operand.value, block.rows, block.depth
    across = _upright(block.weights[0].parts[0], "n") and _upright(value, "m")
    if not across or value.op != "load" or value.args or value.data[0].shape != (depth, rows):
        return block
    source = value.data[0]
    copy = Node(f"{source.name}_in_rows", "library", "copy", (source,), (rows, depth), source.dtype)
    host.lines.append(f"{copy.name} = {host.contiguous(source)}.t().contiguous()")
    host.names[id(copy)] = copy.name
    host.dense.add(id(copy))
    place = Affine.of(block.one - 1, {"m": depth, INNER: block.one})
    return replace(block, operand=replace(block.operand, value=Table().load(copy, place)))


def _is_shared(block: Product) -> bool:
    """Return whether programs share the depth on some workload."""
    sizes = zip(block.rows.values, block.columns.values, block.depth.values, strict=True)
    return any(d >= LONG or (d >= DEEP and r * c <= FEW_TILES * 128 * 128) for r, c, d in sizes)


def _signature(name: str, parameters: list[str], constants: list[str]) -> list[str]:
    listed = ", ".join([*parameters, *(f"{c}: tl.constexpr" for c in constants)])
    return ["@triton.jit", f"def {name}({listed}):"]


def _head(rows: str, columns: str, depth: str, shared: bool) -> list[str]:
    """Return the lines that find this program's tile. Rows beyond the last are the last once more: no mask."""
    return [
        "    zero = tl.zeros([1, 1], tl.float32)",
        "    tile = tl.program_id(0)",
        f"    down, across = tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS)",
        "    first = tile // (GROUP * across) * GROUP",
        "    height = tl.minimum(down - first, GROUP)",
        "    by_row = ((first + tile % (GROUP * across) % height) * ROWS).to(INDEX)",
        "    by_column = (tile % (GROUP * across) // height * COLUMNS).to(INDEX)",
        f"    m = tl.minimum(by_row + tl.arange(0, ROWS)[:, None], {rows} - 1)",
        "    n = by_column + tl.arange(0, COLUMNS)[:, None]",
        f"    n_inside = n < {columns}",
        *(["    begin = tl.program_id(1) * piece", f"    end = tl.minimum(begin + piece, {depth})"] if shared else []),
    ]


def _loop(block: Product, pen: Pen, shared: bool) -> None:
    """Write the steps along the depth."""
    depth, weight = whole(block.depth), block.weights[0].parts[0]
    upright = _upright(weight, "n")
    turned = upright and not _upright(block.operand.value, "m")
    pen.lines += [
        f"    total = tl.zeros([{'COLUMNS, ROWS' if turned else 'ROWS, COLUMNS'}], tl.float32)",
        f"    for start in range({'begin, end' if shared else f'0, {depth}'}, DEPTH):",
        "        j = start + tl.arange(0, DEPTH)[None, :]",
        f"        column_inside = tl.full([1, DEPTH], True, tl.int1) if EVEN else j < {depth}",
    ]
    masks = ("column_inside", "", "column_inside")
    a = pen.writer({"m"}, "        ", masks=masks).operand(block.operand.value, "a")
    if upright:  # clamped columns would not be neighbours for the compiler, and be loaded one by one
        pen.lines.append("        b_inside = n_inside & column_inside")
        masks = ("b_inside", "n_inside", "column_inside")
    else:
        pen.lines.append(f"        n = tl.minimum(n, {whole(block.columns)} - 1)")
    b = pen.writer({"n"}, "        ", masks=masks).operand(weight, "b")
    first, second = (b, a) if turned else (a, b)
    pen.lines += [
        f'        product = tl.dot({first}, tl.trans({second}), input_precision="tf32x3")',
        "        total = tl.fma(product, 1.0, total)  # a sum would be moved into the tensor core",
    ]
    pen.lines += ["    total = tl.trans(total)"] * turned


def _upright(value: Expr, variable: str) -> bool:
    """Return true if neighbours along a variable other than the depth are neighbours in memory."""
    places = [e.data[1].coefficient(variable) for e in walk([value]) if e.op == "load"]
    return any(step is not None and step.equals(1) for step in places)


def _finish(block: Product, pen: Pen, shared: bool) -> None:
    """Write what follows the loop: the sums of a part of the depth, or the result."""
    pen.lines += _places(block)
    if not shared:
        _store(block, pen, "    ")
        return
    rows, columns = whole(block.rows), whole(block.columns)
    pen.lines += [
        "    if SPLIT:",
        f"        rows_of_sums = tl.program_id(1).to(INDEX) * {rows} + m",
        f"        tl.store(sums_ptr + rows_of_sums * {columns} + c, total, mask=inside)",
        "    else:",
    ]
    _store(block, pen, "        ")


def _join(block: Product, pen: Pen) -> None:
    """Write the kernel that adds the sums of all parts, and computes the result."""
    rows, columns = whole(block.rows), whole(block.columns)
    pen.lines += [
        '    """Add the sums of all parts of the depth."""',
        "    zero = tl.zeros([1, 1], tl.float32)",
        "    by_row = (tl.program_id(0) * ROWS).to(INDEX)",
        "    by_column = (tl.program_id(1) * COLUMNS).to(INDEX)",
        *_places(block),
        "    total = tl.zeros([ROWS, COLUMNS], tl.float32)",
        "    for part in range(0, parts):",
        f"        rows_of_sums = part * {rows} + m",
        f"        total += tl.load(sums_ptr + rows_of_sums * {columns} + c, mask=inside, other=0)",
    ]
    _store(block, pen, "    ")


def _places(block: Product) -> list[str]:
    """Return the lines that find the elements of the result."""
    return [
        "    m = by_row + tl.arange(0, ROWS)[:, None]",
        f"    row_inside = m < {whole(block.rows)}",
        "    c = by_column + tl.arange(0, COLUMNS)[None, :]",
        f"    c_inside = c < {whole(block.columns)}",
        "    inside = row_inside & c_inside",
    ]


def _store(block: Product, pen: Pen, indent: str) -> None:
    """Write the column's scale, the bias, and the result."""
    masks, weight = ("inside", "row_inside", "c_inside"), block.weights[0]
    scale = None if weight.scale is None else renamed(weight.scale, {"n": INNER})
    for sign, expr in (("*", scale), ("+", weight.bias)):
        if expr is not None:
            value = pen.writer({"m"}, indent, masks=masks, column="c").value(expr)
            pen.lines.append(f"{indent}total = total {sign} {value}")
    given = {id(block.products[0]): "total"}
    value = pen.writer({"m"}, indent, masks=masks, column="c", given=given).value(block.out)
    held = Tile({"m": block.rows}, block.columns, block.one)
    place = linear((held.at["m"], held.column), (block.rows, block.columns), block.one)
    row = f"m * {whole(block.columns)}" if place.coefficient("m") is not None else "m * 0"
    pen.lines.append(f"{indent}tl.store(out_ptr + ({row}) + c, {value}, mask=inside)")
