"""Positions of the largest or least elements along a dimension: a program for a strip of the dimensions after it.

Each lane of a tile keeps the best of its own elements, and lanes meet at the end. Where strips are few, programs share
the dimension, and a second kernel joins their parts. The first of equal elements wins, and a NaN wins over all numbers,
as in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code
from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, Node, is_in_memory
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

FINDS = {"aten.argmax.default": "", "aten.argmin.default": "-"}  # the sign that makes it a search for the largest
TUNABLES = {
    "SEARCH_COLUMNS": [128, 256, 64, 512],  # of a program
    "SEARCH_WARPS": [8, 4, 2],
    "SEARCH_UNROLL": [16, 8, 32, 4],  # loads of a thread that are on their way at once
}


def fit(root: Node, one: Size) -> tuple[Extreme, list[Node]]:
    """Return the block for a search for positions of extremes, and what it reads. Raise Unsupported."""
    args, named = root.data
    given = dict(zip(("dim", "keepdim"), args[1:], strict=False)) | named
    x, dimension = args[0], given.get("dim")
    if not isinstance(x, Node) or not isinstance(dimension, int) or x.dtype not in FLOATS or x.rank < 1:
        raise Unsupported("a search of another form")
    if not is_in_memory(x, reshaped=True):
        raise Unsupported("a search in a view")
    dimension %= x.rank
    outer, inner = product(x.shape[:dimension], one), product(x.shape[dimension + 1 :], one)
    return Extreme(x, FINDS[root.fn], outer, x.shape[dimension], inner), [x]


@dataclass(slots=True)
class Extreme:
    """A search along the middle one of three dimensions."""

    x: Node
    sign: str
    outer: Size
    length: Size
    inner: Size
    title: str = "search for extremes"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        source = host.contiguous(self.x)
        out = host.allocate(node, host.device())
        sizes = ", ".join(host.size(s) for s in (self.outer, self.length, self.inner))
        host.lines.append(f"_extreme(find_{node.name}, {source}, {out}, {sizes})")
        kernel = KERNEL.replace("NAME", f"find_{node.name}").replace("SIGN", self.sign)
        kernel = kernel.replace("LEAST", "inf" if self.sign else "-inf").replace("ORDER", ">=" if self.sign else "<=")
        return Code([BETTER, kernel, JOIN], {"extreme": LAUNCH}, dict(TUNABLES))


BETTER = '''@triton.jit
def _better(a, i, b, k):
    """The larger of two elements with its position; the earlier one of equals."""
    later = (b > a) | ((b != b) & (a == a)) | (((b == a) | ((b != b) & (a != a))) & (k < i))
    return tl.where(later, b, a), tl.where(later, k, i)'''
KERNEL = """@triton.jit
def NAME(
    x_ptr, out_ptr, best_ptr, place_ptr, length, inner, piece,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
    EVEN: tl.constexpr, WHOLE: tl.constexpr, SPLIT: tl.constexpr, INDEX: tl.constexpr,
):
    strips = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0)
    j = ((program % strips) * BLOCK + tl.arange(0, BLOCK)[None, :]).to(INDEX)
    column_inside = tl.full([1, BLOCK], True, tl.int1) if EVEN else j < inner
    outer = (program // strips).to(INDEX)
    begin = tl.program_id(1) * piece
    end = tl.minimum(begin + piece, length)
    lanes = tl.arange(0, ROWS)[:, None]
    at = lanes.to(INDEX) * inner + j  # of the first tile: what follows differs in the base alone
    x_ptr += outer * length * inner + begin.to(INDEX) * inner
    best = tl.full([ROWS, BLOCK], float("LEAST"), tl.float32)
    place = begin + lanes + tl.zeros([ROWS, BLOCK], tl.int32)
    for start in range(begin, end, ROWS * UNROLL):
        for step in tl.static_range(UNROLL):
            i = start + step * ROWS + lanes
            inside = column_inside if WHOLE else (i < end) & column_inside
            x = tl.load(x_ptr + at, mask=inside, other=float("LEAST")).to(tl.float32)
            stays = (x ORDER best) | (best != best)
            best = tl.where(stays, best, x)
            place = tl.where(stays, place, i)
            x_ptr += ROWS * inner
    best, place = tl.reduce((SIGNbest, place), 0, _better, keep_dims=True)
    out = (outer * tl.num_programs(1) + tl.program_id(1)) * inner + j
    if SPLIT:
        tl.store(best_ptr + out, best, mask=column_inside)
        tl.store(place_ptr + out, place, mask=column_inside)
    else:
        tl.store(out_ptr + out, place.to(tl.int64), mask=column_inside)"""
JOIN = '''@triton.jit
def join_places(
    best_ptr, place_ptr, out_ptr, parts, inner, PARTS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr
):
    """Join what programs found in the parts of a dimension."""
    strips = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0)
    j = (program % strips) * BLOCK + tl.arange(0, BLOCK)[None, :]
    outer = (program // strips).to(INDEX)
    part = tl.arange(0, PARTS)[:, None]
    inside = (part < parts) & (j < inner)
    at = (outer * parts + part) * inner + j
    best = tl.load(best_ptr + at, mask=inside, other=float("-inf"))
    place = tl.load(place_ptr + at, mask=inside, other=2147483647)
    best, place = tl.reduce((best, place), 0, _better, keep_dims=True)
    tl.store(out_ptr + outer * inner + j, place.to(tl.int64), mask=j < inner)'''
LAUNCH = '''
def _extreme(kernel, x, out, outer, length, inner):
    """A program for each strip of columns, and for parts of them where strips are few.

    Loads wait in registers: rows that are not aligned to 16 bytes could only be copied ahead element by element.
    """
    processors = _processors(x.device)
    block = min(CONFIG["SEARCH_COLUMNS"], triton.next_power_of_2(inner))
    while block > 32 and outer * triton.cdiv(inner, block) < 2 * processors:
        block //= 2
    vector = 16 // x.element_size() if inner == 1 or inner % 16 == 0 else 1
    warps = max(1, min(CONFIG["SEARCH_WARPS"], triton.next_power_of_2(length) * block // (128 * vector)))
    rows = max(1, min(32 * warps * vector // block, triton.next_power_of_2(length)))
    unroll = max(1, min(CONFIG["SEARCH_UNROLL"] // min(2, vector), triton.next_power_of_2(length) // rows))
    programs, step = outer * triton.cdiv(inner, block), rows * unroll
    wanted = 4 * processors // max(1, programs) if programs < 2 * processors else 1
    parts = max(1, min(128, wanted, triton.cdiv(length, 2 * step)))
    piece = triton.cdiv(triton.cdiv(length, parts), step) * step
    parts = triton.cdiv(length, piece)
    best = place = out
    if parts > 1:
        best = torch.empty((outer, parts, inner), dtype=torch.float32, device=x.device)
        place = torch.empty((outer, parts, inner), dtype=torch.int32, device=x.device)
    options = {"ROWS": rows, "BLOCK": block, "UNROLL": unroll, "EVEN": inner % block == 0}
    options |= {"WHOLE": length % step == 0, "SPLIT": parts > 1, "INDEX": _index((x,)), "num_warps": warps}
    kernel[(programs, parts)](x, out, best, place, length, inner, piece, **options)
    if parts > 1:
        whole = triton.next_power_of_2(parts)
        block = min(max(1, 2048 // whole), triton.next_power_of_2(inner))
        options = {"PARTS": whole, "BLOCK": block, "INDEX": _index((best,))}
        join_places[(outer * triton.cdiv(inner, block),)](best, place, out, parts, inner, **options)
'''
