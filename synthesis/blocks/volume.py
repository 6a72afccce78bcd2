"""Max and average pooling over three dimensions: each program goes down a strip of columns of one layer of results.
Planes and lines whose windows are not whole are volumes of one layer.

A row of the input is reduced over the width of the window, and with the rows at its place in the layers that the window
reaches. Where windows overlap in height, what the next one needs of that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synthesis.blocks.block import Code
from synthesis.blocks.pool import join, plus
from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, Node, is_in_memory
from synthesis.graph.sizes import Size
from synthesis.host import Host
from synthesis.rules.pools import listed, literals

VOLUMES = {
    f"aten.{kind}_pool{rank}d.default": fn for kind, fn in (("max", "max"), ("avg", "mean")) for rank in (1, 2, 3)
}
TUNABLES = {
    "VOLUME_COLUMNS": [128, 256, 64, 512],
    "VOLUME_ROWS": [32, 16, 64, 128],  # of results, of a program
    "VOLUME_ELEMENTS": [1, 2, 4],  # of a thread
    "VOLUME_UNROLL": [1, 2, 4],
}
Triple = tuple[int, int, int]


def fit(root: Node, _: Size) -> tuple[Volume, list[Node]]:
    """Return the block for a pooling, and what it reads. Raise Unsupported."""
    args, named = root.data
    x, fn = args[0], VOLUMES[root.fn]
    names: tuple[str, ...] = ("kernel", "stride", "padding", "dilation", "ceil_mode")
    if fn == "mean":
        names = ("kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    given = dict(zip(names, args[1:], strict=False)) | named
    rank = int(root.fn.split("pool")[1][0])
    window = _triple(given["kernel"], rank, 1)
    stride = _triple(given.get("stride") or given["kernel"], rank, 1)
    padding, dilation = _triple(given.get("padding", 0), rank, 0), _triple(given.get("dilation", 1), rank, 1)
    in_memory = isinstance(x, Node) and x.rank in (rank + 1, rank + 2) and is_in_memory(x, reshaped=True)
    if not in_memory or x.dtype not in FLOATS:
        raise Unsupported("a pooling of something else")
    divisor = given.get("divisor_override") or window[0] * window[1] * window[2]
    counted = "" if given.get("divisor_override") else _counted(padding, given)
    return Volume(x, fn, rank, window, stride, padding, dilation, divisor, counted), [x]


def _triple(value: object, rank: int, missing: int) -> Triple:
    """Return a number, or one for each dimension, as three literals. Raise Unsupported where workloads differ."""
    first, second, third = [missing] * (3 - rank) + literals(listed(value, rank))
    return first, second, third


def _counted(padding: Triple, given: Mapping[str, Any]) -> str:
    """Return which elements of a window a mean counts where they differ between windows."""
    if any(padding) and not given.get("count_include_pad", True):
        return "inside"
    return "padded" if given.get("ceil_mode") else ""


@dataclass(slots=True)
class Volume:
    """Windows of `window` elements `dilation` apart, `stride` apart, over `x` with `padding` at each side.

    A mean divides by `divisor`, or by how many elements of a window are "inside" or in the "padded" tensor.
    """

    x: Node
    fn: str
    rank: int
    window: Triple
    stride: Triple
    padding: Triple
    dilation: Triple
    divisor: int
    counted: str
    title: str = "pooling"

    @property
    def _kept(self) -> int:
        """Return how many of a window's rows are the first ones of the next window."""
        return max(0, self.window[1] - self.stride[1]) if self.dilation[1] == 1 else 0

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        source = host.contiguous(self.x)
        out = host.allocate(node, host.device())
        blocks = " * ".join(host.size(s) for s in self.x.shape[: -self.rank]) or "1"
        shapes = [[host.size(s) for s in shape[-self.rank :]] for shape in (self.x.shape, node.shape)]
        sizes = ", ".join(text for shape in shapes for text in ["1"] * (3 - self.rank) + shape)
        host.lines.append(f"_volume(pool_{node.name}, {source}, {out}, {blocks}, {sizes})")
        pieces = {"_max"} if self.fn == "max" else set()
        return Code([self._row(node.name), self._kernel(node.name)], {"volume": LAUNCH}, dict(TUNABLES), pieces)

    def _row(self, name: str) -> str:
        """Write the function that reduces rows of the input at one height over the width and depth of the windows."""
        filling = 'float("-inf")' if self.fn == "max" else "0.0"
        shifts = [number * self.dilation[2] - self.padding[2] for number in range(self.window[2])]
        lines = []
        for layer in range(self.window[0]):
            lines.append(f"    z = {plus('front', layer * self.dilation[0])}")
            lines.append("    inside = (z >= 0) & (z < depth) & (i >= 0) & (i < height)")
            lines.append("    at = x_ptr + (z * height + i) * width + column")
            for number, shift in enumerate(shifts):
                place = plus("column", shift)
                mask = f"inside & ({place} >= 0)" if shift < 0 else "inside"
                load = f"tl.load({plus('at', shift)}, mask={mask} & ({place} < width), other={filling})"
                lines.append(f"    value_{number} = {load}.to(tl.float32)")
            row = join(self.fn, [f"value_{number}" for number in range(len(shifts))])
            lines.append(f"    total = {row if layer == 0 else join(self.fn, ['total', f'({row})'])}")
        return "\n".join(
            [
                "@triton.jit",
                f"def pool_row_{name}(x_ptr, front, i, column, depth, height, width):",
                '    """The rows at one height, reduced over the width and the depth of each window."""',
                *lines,
                "    return total",
            ]
        )

    def _kernel(self, name: str) -> str:
        """Write the kernel."""
        row = f"pool_row_{name}(x_ptr, front, {{}}, column, depth, height, width)"
        rows = [f"row_{number}" for number in range(self.window[1])]
        kept = self._kept
        tops = [plus("top", number * self.dilation[1]) for number in range(len(rows))]
        first = plus(_times("first", self.stride[1]), -self.padding[1])
        lines = [
            *self._head(name),
            *(f"    row_{number} = {row.format(plus(first, number))}" for number in range(kept)),
            "    for i in tl.range(first, last, loop_unroll_factor=UNROLL):",
            f"        top = {plus(_times('i', self.stride[1]), -self.padding[1])}",
            *(f"        {rows[n]} = {row.format(tops[n])}" for n in range(kept, len(rows))),
            f"        total = {join(self.fn, rows)}",
            *self._mean(),
            "        tl.store(out_ptr + i * out_width + j, total, mask=j < out_width)",
            *(f"        {rows[n]} = {rows[n + self.stride[1]]}" for n in range(kept)),
        ]
        return "\n".join(lines)

    def _mean(self) -> list[str]:
        """Write the division of a sum by the number of elements."""
        if self.fn == "max":
            return []
        if not self.counted:
            return [f"        total *= {1.0 / self.divisor!r}"]
        starts = ("front", "top", plus("column", -self.padding[2]))
        counts = []
        for axis, (start, extent) in enumerate(zip(starts, ("depth", "height", "width"), strict=True)):
            within = self.counted == "inside"
            last = extent if within else plus(extent, self.padding[axis])
            first = f"tl.maximum({start}, 0)" if within else start if start.isidentifier() else f"({start})"
            counts.append(f"(tl.minimum({plus(start, self.window[axis])}, {last}) - {first})")
        return [f"        count = {' * '.join(counts)}", "        total = tl.div_rn(total, count.to(tl.float32))"]

    def _head(self, name: str) -> list[str]:
        """Write the parameters of the kernel, and where its program is."""
        sizes = "depth, height, width, out_depth, out_height, out_width"
        constants = ", ".join(f"{c}: tl.constexpr" for c in ("ROWS", "BLOCK", "UNROLL", "INDEX"))
        return [
            "@triton.jit",
            f"def pool_{name}(x_ptr, out_ptr, {sizes}, {constants}):",
            "    strips = tl.cdiv(out_width, BLOCK)",
            "    chunks = tl.cdiv(out_height, ROWS)",
            "    program = tl.program_id(0)",
            "    j = (program % strips) * BLOCK + tl.arange(0, BLOCK)",
            "    first = (program // strips % chunks) * ROWS",
            "    last = tl.minimum(first + ROWS, out_height)",
            "    layer = (program // strips // chunks).to(INDEX)",
            "    volume = layer // out_depth",
            f"    front = {plus(_times('(layer % out_depth)', self.stride[0]), -self.padding[0])}",
            f"    column = {_times('j', self.stride[2])}",
            "    x_ptr += volume * depth * height * width",
            "    out_ptr += layer * out_height * out_width",
        ]


def _times(text: str, number: int) -> str:
    return f"{text} * {number}" if number > 1 else text


LAUNCH = '''
def _volume(kernel, x, out, volumes, depth, height, width, out_depth, out_height, out_width):
    """A program for each strip of columns and chunk of rows of a layer."""
    block = min(CONFIG["VOLUME_COLUMNS"], triton.next_power_of_2(out_width))
    rows = min(CONFIG["VOLUME_ROWS"], out_height)
    grid = (volumes * out_depth * triton.cdiv(out_height, rows) * triton.cdiv(out_width, block),)
    warps = max(1, block // (32 * CONFIG["VOLUME_ELEMENTS"]))
    options = {"UNROLL": CONFIG["VOLUME_UNROLL"], "INDEX": _index((x, out)), "num_warps": warps}
    sizes = (depth, height, width, out_depth, out_height, out_width)
    kernel[grid](x, out, *sizes, ROWS=rows, BLOCK=block, **options)
'''
