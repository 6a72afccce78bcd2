"""Max and average pooling over two dimensions: each program goes down a strip of columns.

A row of the input is reduced over the width of the window once, and kept for all the rows of results that its window
reaches, where windows overlap by rows. Neighbouring columns are read again, from the cache.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from synthesis.blocks.block import Code, compute
from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, HEADS, Node
from synthesis.graph.sizes import Size
from synthesis.host import Host

POOLS = {"aten.max_pool2d.default": "max", "aten.avg_pool2d.default": "mean"}
TUNABLES = {
    "POOL_COLUMNS": [512, 256, 128, 1024],
    "POOL_ROWS": [64, 32, 128, 256],  # of results, of a program
    "POOL_WARPS": [4, 2, 8, 1],
    "POOL_UNROLL": [4, 2, 1, 8],
}


def use_pool(root: Node) -> bool:
    """Let a block compute `root` if it is a pooling. Return whether it is one that the block covers."""
    if root.kind != "library" or root.fn not in POOLS:
        return False
    try:
        block = _fit(root)
    except Unsupported:
        return False
    compute(root, block, [block.x])
    return True


def _fit(root: Node) -> Pool:
    args, named = root.data
    x = args[0]
    fn = POOLS[root.fn]
    names: tuple[str, ...] = ("kernel", "stride", "padding", "dilation", "ceil_mode")
    if fn == "mean":
        names = ("kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    given = dict(zip(names, args[1:], strict=False)) | named
    window = _pair(given["kernel"])
    stride = _pair(given.get("stride") or list(window))
    padding = _pair(given.get("padding", 0))
    if given.get("ceil_mode") or given.get("divisor_override") or _pair(given.get("dilation", 1)) != (1, 1):
        raise Unsupported("a pooling of another form")
    if padding != (0, 0) and not given.get("count_include_pad", True):
        raise Unsupported("a mean over parts of windows")
    if not isinstance(x, Node) or x.rank not in (3, 4) or x.dtype not in FLOATS:
        raise Unsupported("a pooling of something else")
    source = x
    while source.kind == "view" and source.fn == "reshape":
        source = source.inputs[0]
    if source.kind not in (*HEADS, "library", "item", "pointwise", "reduce"):
        raise Unsupported("a pooling of a view")
    return Pool(x, fn, window, stride, padding)


def _pair(value: Any) -> tuple[int, int]:
    """Return a number, or two, as two literals. Raise Unsupported where they differ between workloads."""
    listed = list(value) if isinstance(value, list | tuple) else [value]
    numbers = []
    for one in listed if len(listed) == 2 else listed * 2:
        literal = one.values[0] if isinstance(one, Size) else one
        if not isinstance(literal, int) or (isinstance(one, Size) and not one.equals(literal)):
            raise Unsupported("a window that differs between workloads")
        numbers.append(literal)
    return numbers[0], numbers[1]


@dataclass(slots=True)
class Pool:
    """Windows of `window` elements, `stride` apart, over `x` with `padding` at each side."""

    x: Node
    fn: str
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    title: str = "pooling"

    @property
    def _start(self) -> str:
        return 'float("-inf")' if self.fn == "max" else "0.0"

    def _join(self, parts: list[str]) -> str:
        """Return the maximum or the sum of some values."""
        if self.fn == "mean":
            return " + ".join(parts)
        text = parts[0]
        for part in parts[1:]:
            text = f"_max({text}, {part})"
        return text

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        name = node.name
        source = host.contiguous(self.x)
        out = host.allocate(node, host.device())
        lead = [host.size(s) for s in self.x.shape[:-2]]
        planes = " * ".join(lead) or "1"
        sizes = [host.size(s) for s in (*self.x.shape[-2:], *node.shape[-2:])]
        host.lines.append(f"_pool(pool_{name}, {source}, {out}, {planes}, {', '.join(sizes)})")
        pieces = {"_max"} if self.fn == "max" else set()
        return Code([self._row(name), self._kernel(name)], {"pool": LAUNCH}, dict(TUNABLES), pieces)

    def _row(self, name: str) -> str:
        """Write the function that reduces one row of the input over the width of the windows."""
        steps = []
        for number in range(self.window[1]):
            shift = number - self.padding[1]
            bounds = [f"({_plus('column', shift)} >= 0)"] if shift < 0 else []
            mask = " & ".join(["inside", *bounds, f"({_plus('column', shift)} < width)"])
            load = f"tl.load({_plus('at', shift)}, mask={mask}, other={self._start})"
            steps.append(f"    value_{number} = {load}.to(tl.float32)")
        values = [f"value_{number}" for number in range(self.window[1])]
        return "\n".join(
            [
                "@triton.jit",
                f"def pool_row_{name}(x_ptr, i, j, height, width):",
                '    """One row of the input, reduced over the width of each window."""',
                "    inside = (i >= 0) & (i < height)",
                f"    column = j * {self.stride[1]}" if self.stride[1] > 1 else "    column = j",
                "    at = x_ptr + i * width + column",
                *steps,
                f"    return {self._join(values)}",
            ]
        )

    def _kernel(self, name: str) -> str:
        high, step, above = self.window[0], self.stride[0], self.padding[0]
        scale = f" * {1.0 / (self.window[0] * self.window[1])!r}" if self.fn == "mean" else ""
        head = ["x_ptr", "out_ptr", "height", "width", "out_height", "out_width"]
        constants = ["ROWS", "BLOCK", "UNROLL", "INDEX"]
        lines = [
            "@triton.jit",
            f"def pool_{name}({', '.join([*head, *(f'{c}: tl.constexpr' for c in constants)])}):",
            "    strips = tl.cdiv(out_width, BLOCK)",
            "    chunks = tl.cdiv(out_height, ROWS)",
            "    program = tl.program_id(0)",
            "    # Program 0 of 1: adding it hides from the compiler which of the shifted loads are aligned.",
            "    # It would give those another layout, and exchange every row through shared memory.",
            "    j = (program % strips) * BLOCK + tl.arange(0, BLOCK) + tl.program_id(1)",
            "    first = (program // strips % chunks) * ROWS",
            "    last = tl.minimum(first + ROWS, out_height)",
            "    plane = (program // strips // chunks).to(INDEX)",
            "    x_ptr += plane * height * width",
            "    out_ptr += plane * out_height * out_width",
        ]
        row = f"pool_row_{name}(x_ptr, {{}}, j, height, width)"
        store = f"        tl.store(out_ptr + i * out_width + j, {{}}{scale}, mask=j < out_width)"
        rows = [f"row_{number}" for number in range(high)]
        loop = "    for i in tl.range(first, last, loop_unroll_factor=UNROLL):"
        if step == 1 and high > 1:  # windows share rows
            for number, kept in enumerate(rows[:-1]):
                lines.append(f"    {kept} = {row.format(_plus('first', number - above))}")
            lines += [loop, f"        {rows[-1]} = {row.format(_plus('i', high - 1 - above))}"]
            lines.append(store.format(f"({self._join(rows)})"))
            lines += [f"        {kept} = {later}" for kept, later in itertools.pairwise(rows)]
        else:
            lines += [loop, f"        top = {_plus(f'i * {step}' if step > 1 else 'i', -above)}"]
            lines += [f"        {kept} = {row.format(_plus('top', number))}" for number, kept in enumerate(rows)]
            lines.append(store.format(f"({self._join(rows)})"))
        return "\n".join(lines)


def _plus(text: str, number: int) -> str:
    return text if number == 0 else f"{text} + {number}" if number > 0 else f"{text} - {-number}"


LAUNCH = '''
def _pool(kernel, x, out, planes, height, width, out_height, out_width):
    """A program for each strip of columns and chunk of rows."""
    block = min(CONFIG["POOL_COLUMNS"], triton.next_power_of_2(out_width))
    rows = min(CONFIG["POOL_ROWS"], out_height)
    grid = (planes * triton.cdiv(out_height, rows) * triton.cdiv(out_width, block), 1)
    warps = max(1, min(CONFIG["POOL_WARPS"], block // 32))
    options = {"UNROLL": CONFIG["POOL_UNROLL"], "INDEX": _index((x, out)), "num_warps": warps}
    kernel[grid](x, out, height, width, out_height, out_width, ROWS=rows, BLOCK=block, **options)
'''
