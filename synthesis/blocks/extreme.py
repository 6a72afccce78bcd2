"""Positions of the largest or least elements along a dimension: a program for a strip of the dimensions after it.

Each lane of a tile keeps the best of its own elements, and lanes meet at the end. The first of equal elements wins, and
a NaN wins over all numbers, as in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code, is_in_memory
from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, Node
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

FINDS = {"aten.argmax.default": "", "aten.argmin.default": "-"}  # the sign that makes it a search for the largest
TUNABLES = {
    "STRIP": [128, 256, 64, 512],  # columns of a program
    "STRIP_TILE": [2048, 4096, 1024, 8192],  # elements at once
    "STRIP_ELEMENTS": [16, 8, 32],  # of a thread
    "STRIP_STAGES": [3, 2, 4, 1],
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
        kernel = kernel.replace("LEAST", "inf" if self.sign else "-inf")
        return Code([BETTER, kernel], {"extreme": LAUNCH}, dict(TUNABLES))


BETTER = '''@triton.jit
def _better(a, i, b, k):
    """The larger of two elements with its position; the earlier one of equals."""
    later = (b > a) | ((b != b) & (a == a)) | (((b == a) | ((b != b) & (a != a))) & (k < i))
    return tl.where(later, b, a), tl.where(later, k, i)'''
KERNEL = """@triton.jit
def NAME(
    x_ptr, out_ptr, length, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, INDEX: tl.constexpr
):
    strips = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0)
    j = (program % strips) * BLOCK + tl.arange(0, BLOCK)[None, :]
    column_inside = j < inner
    outer = (program // strips).to(INDEX)
    x_ptr += outer * length * inner
    lanes = tl.arange(0, ROWS)[:, None]
    best = tl.full([ROWS, BLOCK], float("-inf"), tl.float32)
    place = lanes + tl.zeros([ROWS, BLOCK], tl.int32)
    for start in tl.range(0, length, ROWS, num_stages=STAGES):
        i = start + lanes
        inside = (i < length) & column_inside
        x = SIGNtl.load(x_ptr + i * inner + j, mask=inside, other=float("LEAST")).to(tl.float32)
        better = (x > best) | ((x != x) & (best == best))
        best = tl.where(better, x, best)
        place = tl.where(better, i, place)
    best, place = tl.reduce((best, place), 0, _better, keep_dims=True)
    tl.store(out_ptr + outer * inner + j, place.to(tl.int64), mask=column_inside)"""
LAUNCH = '''
def _extreme(kernel, x, out, outer, length, inner):
    """A program for each strip of columns."""
    block = min(CONFIG["STRIP"], triton.next_power_of_2(inner))
    rows = max(1, min(CONFIG["STRIP_TILE"] // block, triton.next_power_of_2(length)))
    warps = max(1, min(32, rows * block // (32 * CONFIG["STRIP_ELEMENTS"])))
    options = {"STAGES": CONFIG["STRIP_STAGES"], "INDEX": _index((x,)), "num_warps": warps}
    kernel[(outer * triton.cdiv(inner, block),)](x, out, length, inner, ROWS=rows, BLOCK=block, **options)
'''
