"""Sums of all elements up to each one, along rows: a program goes along its row and carries the sum of what it left.

What computes the elements is fused into the loads.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code
from synthesis.blocks.tile import Pen, Tile, attempt, evaluate, reads, symbols, whole
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import FLOATS, Node
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

CUMSUM = "aten.cumsum.default"
TUNABLES = {
    "SCAN_BLOCK": [4096, 2048, 8192, 1024],
    "SCAN_ELEMENTS": [16, 8, 32, 4],  # of a thread
    "SCAN_STAGES": [2, 3, 1],
}


def fit(root: Node, one: Size) -> tuple[Scan, list[Node]]:
    """Return the block for a cumulative sum along rows, and what it reads. Raise Unsupported."""
    args, named = root.data
    x, dimension = args[0], args[1] if len(args) > 1 else named["dim"]
    if not isinstance(x, Node) or x.rank < 1 or dimension % x.rank != x.rank - 1:
        raise Unsupported("a scan that is not along rows")
    if x.dtype not in FLOATS or root.dtype not in FLOATS:
        raise Unsupported("a scan of integers")
    rows, length = product(x.shape[:-1], one), x.shape[-1]
    tile = Tile({"o0": rows}, length, one)
    flat = Builder(one).reshape(x, (rows, length))
    value = attempt(lambda: evaluate(tile, flat, (tile.at["o0"], tile.column), []))
    if value is None or not value.full:
        value = evaluate(tile, flat, (tile.at["o0"], tile.column), [x])
    return Scan(value, rows, length), reads([value])


@dataclass(slots=True)
class Scan:
    """A row's elements, and how many rows there are."""

    value: Expr
    rows: Size
    length: Size
    title: str = "scan"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        loads = reads([self.value])
        sizes = symbols([self.value], [self.length])
        name, length = node.name, whole(self.length)
        pointers = [f"{n.name}_ptr" for n in loads]
        pen = Pen(
            node.dtype in ("float32", "mixed"),
            {*sizes, *pointers, "zero", "o0", "j", "carry", "start", "part", "sums", "inside", "column_inside"},
        )
        constants = ("BLOCK", "STAGES", "INDEX")
        listed = [*pointers, "out_ptr", *sizes, *(f"{c}: tl.constexpr" for c in constants)]
        pen.lines += [
            "@triton.jit",
            f"def scan_{name}({', '.join(listed)}):",
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    o0 = tl.program_id(0).to(INDEX)",
            "    carry = tl.zeros([1, 1], tl.float32)",
            f"    for start in tl.range(0, {length}, BLOCK, num_stages=STAGES):",
            "        j = start + tl.arange(0, BLOCK)[None, :]",
            f"        column_inside = j < {length}",
            "        inside = column_inside",
        ]
        value = pen.writer((), "        ").value(self.value)
        pen.lines += [
            f"        part = tl.where(inside, {value}, 0.0)",
            "        sums = tl.cumsum(part, axis=1) + carry",
            f"        tl.store(out_ptr + o0 * {length} + j, sums, mask=inside)",
            "        carry += tl.sum(part, axis=1, keep_dims=True)",
        ]
        arguments = [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        given = ", ".join([*arguments, out, *sizes])
        host.lines.append(f"_scan(scan_{name}, {host.size(self.rows)}, {host.size(self.length)}, {given})")
        return Code(["\n".join(pen.lines)], {"scan": LAUNCH}, dict(TUNABLES), pen.pieces)


LAUNCH = '''
def _scan(kernel, rows, n, *arguments):
    """A program for each row, block after block."""
    block = min(CONFIG["SCAN_BLOCK"], triton.next_power_of_2(n))
    warps = max(1, min(32, block // (32 * CONFIG["SCAN_ELEMENTS"])))
    options = {"STAGES": CONFIG["SCAN_STAGES"], "INDEX": _index(arguments), "num_warps": warps}
    kernel[(rows,)](*arguments, BLOCK=block, **options)
'''
