"""Float32 products of many rows on tensor cores, as exact as float32's own.

Each operand is a number of TF32 and its rest, another one: three products of TF32 make one of float32 ("tf32x3"). The
sum leaves the tensor core after every step. There it would be cut at each addition, and over a long depth all cuts go
towards zero; outside it is rounded.

The second operand of a tensor core lies in shared memory along the depth. Where neighbours of the weights are columns,
the transposed product is computed: then the weights are the first operand, which may come from registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synthesis.blocks.block import Code
from synthesis.blocks.factors import renamed
from synthesis.blocks.tile import Pen, Tile, symbols, walk, whole
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import Node
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
    " product total across down"
)

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


def write_large(block: Product, host: Host, node: Node) -> Code:
    """Write the kernel of a product of many rows, and its launch into `host`."""
    loads = block.loads()
    sizes = symbols(block.exprs(), [block.rows, block.columns, block.depth])
    name = f"product_{node.name}"
    text, pieces = _kernel(block, name, loads, sizes)
    arguments = [host.contiguous(n) for n in loads]
    out = host.allocate(node, host.device())
    host.used_symbols |= set(sizes)
    rows, columns, depth = (host.size(s) for s in (block.rows, block.columns, block.depth))
    listed = f"({', '.join(arguments)},), ({', '.join(sizes)}{',' if sizes else ''})"
    host.lines.append(f"_large({name}, {out}, {rows}, {columns}, {depth}, {listed})")
    return Code([text], {"large": LAUNCH}, dict(TUNABLES), pieces)


def _kernel(block: Product, name: str, loads: list[Node], sizes: list[str]) -> tuple[str, set[str]]:
    """Return the kernel's text, and the pieces that it needs."""
    pointers = [*(f"{x.name}_ptr" for x in loads), "out_ptr"]
    pen = Pen(True, {*sizes, *NAMES.split(), *pointers})
    pen.lines += _head(whole(block.rows), whole(block.columns))
    _loop(block, pen)
    _finish(block, pen)
    constants = ["ROWS", "COLUMNS", "DEPTH", "GROUP", "EVEN", "INDEX", "TYPE"]
    parameters = ", ".join([*pointers, *sizes, *(f"{c}: tl.constexpr" for c in constants)])
    return "\n".join(["@triton.jit", f"def {name}({parameters}):", *pen.lines]), pen.pieces


def _head(rows: str, columns: str) -> list[str]:
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
    ]


def _loop(block: Product, pen: Pen) -> None:
    """Write the steps along the depth."""
    depth, weight = whole(block.depth), block.weights[0].parts[0]
    upright = _upright(weight, "n")
    turned = upright and not _upright(block.operand.value, "m")
    pen.lines += [
        f"    total = tl.zeros([{'COLUMNS, ROWS' if turned else 'ROWS, COLUMNS'}], tl.float32)",
        f"    for start in range(0, {depth}, DEPTH):",
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


def _finish(block: Product, pen: Pen) -> None:
    """Write what follows the loop: the column's scale, the bias, the result."""
    pen.lines += [
        "    m = by_row + tl.arange(0, ROWS)[:, None]",
        f"    row_inside = m < {whole(block.rows)}",
        "    c = by_column + tl.arange(0, COLUMNS)[None, :]",
        f"    c_inside = c < {whole(block.columns)}",
        "    inside = row_inside & c_inside",
    ]
    masks, weight = ("inside", "row_inside", "c_inside"), block.weights[0]
    scale = None if weight.scale is None else renamed(weight.scale, {"n": INNER})
    for sign, expr in (("*", scale), ("+", weight.bias)):
        if expr is not None:
            value = pen.writer({"m"}, "    ", masks=masks, column="c").value(expr)
            pen.lines.append(f"    total = total {sign} {value}")
    given = {id(block.products[0]): "total"}
    value = pen.writer({"m"}, "    ", masks=masks, column="c", given=given).value(block.out)
    held = Tile({"m": block.rows}, block.columns, block.one)
    place = linear((held.at["m"], held.column), (block.rows, block.columns), block.one)
    row = f"m * {whole(block.columns)}" if place.coefficient("m") is not None else "m * 0"
    pen.lines.append(f"    tl.store(out_ptr + ({row}) + c, {value}, mask=inside)")
