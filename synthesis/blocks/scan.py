"""Sums of all elements up to each one, along rows: a program goes along its row and carries the sum of what it left.

What computes the elements is fused into the loads. Sums from the end, and those of all elements before each one, are
written where they belong in the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code, base
from synthesis.blocks.tile import Pen, Tile, attempt, evaluate, reads, symbols, whole
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import FLOATS, Node
from synthesis.graph.sizes import Size, product
from synthesis.host import BLOCK, Host

CUMSUM, FLIP = "aten.cumsum.default", "aten.flip.default"
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
    value = _elements(x, rows, length, one)
    return Scan(value, rows, length, x), reads([value])


def fit_turned(root: Node, one: Size) -> tuple[Scan, list[Node]]:
    """Return the block for sums from the end of rows, which two flips and a scan make. Raise Unsupported."""
    scan = root.data[0][0]
    if not isinstance(scan, Node) or scan.fn != BLOCK or not isinstance(scan.data, Scan) or scan.data.kind != "":
        raise Unsupported("a flip of something else")
    turned, sums = scan.data.x, scan.data
    if turned.fn != FLIP or not all(_turns_rows(node) for node in (root, turned)):
        raise Unsupported("a flip of another form")
    value = _elements(turned.data[0][0], sums.rows, sums.length, one)
    return Scan(value, sums.rows, sums.length, turned, "back"), reads([value])


def _turns_rows(flip: Node) -> bool:
    return [d % flip.rank for d in flip.data[0][1]] == [flip.rank - 1]


def fit_before(root: Node, _: Size) -> tuple[Scan, list[Node]]:
    """Return the block for sums of all elements before each one: a zero in front of each row. Raise Unsupported."""
    zero, scan = root.inputs if len(root.inputs) == 2 else (root, root)
    if root.data != root.rank - 1 or scan.fn != BLOCK or not isinstance(scan.data, Scan) or scan.data.kind != "":
        raise Unsupported("a joined tensor of another form")
    if not zero.shape[-1].equals(1) or base(zero).kind != "constant" or base(zero).data != 0 or zero.kind != "view":
        raise Unsupported("something else than a zero in front")
    sums = scan.data
    return Scan(sums.value, sums.rows, sums.length, sums.x, "before", _reach(sums.x, root)), reads([sums.value])


def _reach(x: Node, root: Node) -> Size | None:
    """Return the length of rows that `x` is all but the last element of: as long as the result's, they are aligned."""
    if x.kind != "view" or x.fn != "slice" or (x.data[0], x.data[2]) != (x.rank - 1, 1) or not x.data[1].equals(0):
        return None
    whole_length = x.inputs[0].shape[-1]
    return whole_length if whole_length == root.shape[-1] else None


def _elements(x: Node, rows: Size, length: Size, one: Size) -> Expr:
    """Return the elements of rows, computed where they are loaded if they can be."""
    tile = Tile({"o0": rows}, length, one)
    flat = Builder(one).reshape(x, (rows, length))
    value = attempt(lambda: evaluate(tile, flat, (tile.at["o0"], tile.column), []))
    if value is None or not value.full:
        value = evaluate(tile, flat, (tile.at["o0"], tile.column), [x])
    return value


@dataclass(slots=True)
class Scan:
    """A row's elements, and how many rows there are.

    `kind` is "" for sums of all elements up to each one, "back" for those from the end, and "before" for those of all
    elements before each one. Elements up to `reach`, where it is given, may be loaded, too.
    """

    value: Expr
    rows: Size
    length: Size
    x: Node
    kind: str = ""
    reach: Size | None = None
    title: str = "scan"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        loads = reads([self.value])
        sizes = symbols([self.value], [self.length])
        name, length = node.name, whole(self.length)
        pointers = [f"{n.name}_ptr" for n in loads]
        pen = Pen(
            node.dtype in ("float32", "mixed"),
            {
                *sizes,
                *pointers,
                "zero",
                "o0",
                "j",
                "carry",
                "start",
                "part",
                "sums",
                "inside",
                "column_inside",
                *TURNED,
            },
        )
        constants = ("BLOCK", "STAGES", "INDEX")
        listed = [*pointers, "out_ptr", *sizes, *(f"{c}: tl.constexpr" for c in constants)]
        pen.lines += [
            "@triton.jit",
            f"def scan_{name}({', '.join(listed)}):",
            "    zero = tl.zeros([1, 1], tl.float32)",
            "    o0 = tl.program_id(0).to(INDEX)",
            "    carry = tl.zeros([1, 1], tl.float32)",
            *self._loop(length),
            "        j = start + tl.arange(0, BLOCK)[None, :]",
            f"        column_inside = j < {length if self.reach is None else whole(self.reach)}",
            "        inside = column_inside" if self.reach is None else f"        inside = j < {length}",
        ]
        value = pen.writer((), "        ").value(self.value)
        pen.lines += [
            f"        part = tl.where(inside, {value}, 0.0)",
            f"        sums = tl.cumsum(part, axis=1{', reverse=True' if self.kind == 'back' else ''}) + carry",
            f"        tl.store(out_ptr + {self._place(length)} + j, sums, mask=inside)",
            "        carry += tl.sum(part, axis=1, keep_dims=True)",
        ]
        arguments = [host.contiguous(n) for n in loads]
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        given = ", ".join([*arguments, out, *sizes])
        host.lines.append(f"_scan(scan_{name}, {host.size(self.rows)}, {host.size(node.shape[-1])}, {given})")
        return Code(["\n".join(pen.lines)], {"scan": LAUNCH}, dict(TUNABLES), pen.pieces)

    def _loop(self, length: str) -> list[str]:
        """Write the head of the loop over the blocks of a row, and what is in front of it."""
        if self.kind == "back":
            return [
                f"    last = (tl.cdiv({length}, BLOCK) - 1) * BLOCK",
                f"    for passed in tl.range(0, {length}, BLOCK, num_stages=STAGES):",
                "        start = last - passed",
            ]
        first = [f"    tl.store(out_ptr + o0 * ({length} + 1) + tl.zeros([1, 1], tl.int32), zero)"]
        loop = [f"    for start in tl.range(0, {length}, BLOCK, num_stages=STAGES):"]
        return [*first, *loop] if self.kind == "before" else loop

    def _place(self, length: str) -> str:
        return f"o0 * ({length} + 1) + 1" if self.kind == "before" else f"o0 * {length}"


TURNED = ("last", "passed")  # names of sums from the end
LAUNCH = '''
def _scan(kernel, rows, n, *arguments):
    """A program for each row, block after block."""
    block = min(CONFIG["SCAN_BLOCK"], triton.next_power_of_2(n))
    warps = max(1, min(32, block // (32 * CONFIG["SCAN_ELEMENTS"])))
    options = {"STAGES": CONFIG["SCAN_STAGES"], "INDEX": _index(arguments), "num_warps": warps}
    kernel[(rows,)](*arguments, BLOCK=block, **options)
'''
