"""Max and average pooling over one or two dimensions: each program goes down a strip of columns.

A row of the input is reduced over the width of the window once. Where windows are one apart, it is kept for all rows of
results that its window reaches, and a thread reduces four neighbouring columns and reads their surroundings too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from synthesis.blocks.block import Code
from synthesis.errors import Unsupported
from synthesis.graph.nodes import FLOATS, Node, is_in_memory
from synthesis.graph.sizes import Size
from synthesis.host import Host

GROUP = 4  # columns of a thread where windows are one apart: 16 bytes of float32
POOLS = {f"aten.{kind}_pool{rank}d.default": fn for kind, fn in (("max", "max"), ("avg", "mean")) for rank in (1, 2)}
TUNABLES = {
    "POOL_COLUMNS": [512, 256, 128, 1024],
    "POOL_ROWS": [64, 32, 128, 256],  # of results, of a program
    "POOL_WARPS": [4, 2, 8, 1],
    "POOL_UNROLL": [4, 2, 1, 8],
}


def fit(root: Node, _: Size) -> tuple[Pool, list[Node]]:
    """Return the block for a pooling, and what it reads. Raise Unsupported."""
    args, named = root.data
    x = args[0]
    fn = POOLS[root.fn]
    names: tuple[str, ...] = ("kernel", "stride", "padding", "dilation", "ceil_mode")
    if fn == "mean":
        names = ("kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    given = dict(zip(names, args[1:], strict=False)) | named
    flat = "pool1d" in root.fn
    window = _pair(given["kernel"], 1 if flat else None)
    stride = _pair(given.get("stride") or list(window), 1 if flat else None)
    padding = _pair(given.get("padding", 0), 0 if flat else None)
    dilation = _pair(given.get("dilation", 1), 1 if flat else None)
    if given.get("ceil_mode") or given.get("divisor_override"):
        raise Unsupported("a pooling of another form")
    if padding != (0, 0) and not given.get("count_include_pad", True):
        raise Unsupported("a mean over parts of windows")
    if not isinstance(x, Node) or x.rank not in ((2, 3) if flat else (3, 4)) or x.dtype not in FLOATS:
        raise Unsupported("a pooling of something else")
    if not is_in_memory(x, reshaped=True):
        raise Unsupported("a pooling of a view")
    return Pool(x, fn, window, stride, padding, dilation), [x]


def _pair(value: Any, above: int | None = None) -> tuple[int, int]:
    """Return a number, or two, as two literals, with `above` as the first of one dimension.

    Raise Unsupported where they differ between workloads.
    """
    listed = list(value) if isinstance(value, list | tuple) else [value]
    listed = listed if above is None else [above, listed[-1]]
    numbers = []
    for one in listed if len(listed) == 2 else listed * 2:
        literal = one.values[0] if isinstance(one, Size) else one
        if not isinstance(literal, int) or (isinstance(one, Size) and not one.equals(literal)):
            raise Unsupported("a window that differs between workloads")
        numbers.append(literal)
    return numbers[0], numbers[1]


@dataclass(slots=True)
class Pool:
    """Windows of `window` elements, `stride` apart, over `x` with `padding` at each side.

    The elements of a window are `dilation` apart. Those of one dimension are one row high.
    """

    x: Node
    fn: str
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)
    title: str = "pooling"

    @property
    def _start(self) -> str:
        return 'float("-inf")' if self.fn == "max" else "0.0"

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
        close = self.stride == self.dilation == (1, 1) and self.padding[1] <= GROUP and self._reach <= GROUP
        kernels = [self._close_row(name), self._close(name)] if close else [self._row(name), self._kernel(name)]
        return Code(kernels, {"pool": LAUNCH}, dict(TUNABLES), pieces)

    @property
    def _reach(self) -> int:
        """Return the number of columns by which a window goes beyond the one of its result."""
        return self.window[1] - 1 - self.padding[1]

    def _close_row(self, name: str) -> str:
        """Write the function that reduces one row of the input for four neighbouring columns of results."""
        wanted = (
            {"here": 0} | ({"before": -GROUP} if self.padding[1] else {}) | ({"after": GROUP} if self._reach else {})
        )
        lines = []
        for title, shift in sorted(wanted.items(), key=lambda item: item[1]):
            mask = {"here": "(j < width)", "before": f"(j >= {GROUP})", "after": f"(j + {GROUP} < width)"}[title]
            mask += f" & (j < width + {GROUP})" if title == "before" else ""
            lines.append(f"    {title} = tl.load({plus('at', shift)}, mask=inside & {mask}, other={self._start})")
            lines.append(f"    even, odd = tl.split(tl.reshape({title}.to(tl.float32), [BLOCK // {GROUP}, 2, 2]))")
            names = [_value(shift + number) for number in range(GROUP)]
            lines.append(f"    {names[0]}, {names[2]} = tl.split(even)")
            lines.append(f"    {names[1]}, {names[3]} = tl.split(odd)")
        width = self.window[1]
        first = -self.padding[1]
        pairs = {first + e + step for e in range(GROUP) for step in range(0, width - 1, 2)}
        lines += [f"    {_pair_of(d)} = {join(self.fn, [_value(d), _value(d + 1)])}" for d in sorted(pairs)]
        results = []
        for place in range(first, first + GROUP):
            parts = [_pair_of(place + step) for step in range(0, width - 1, 2)]
            parts += [_value(place + width - 1)] if width % 2 else []
            results.append(join(self.fn, parts))
        return "\n".join(
            [
                "@triton.jit",
                f"def pool_row_{name}(x_ptr, i, j, height, width, BLOCK: tl.constexpr):",
                '    """One row of the input, reduced over the width of each window: four neighbouring columns."""',
                "    inside = (i >= 0) & (i < height)",
                "    at = x_ptr + i * width + j",
                *lines,
                f"    return {', '.join(results)}",
            ]
        )

    def _close(self, name: str) -> str:
        """Write the kernel for windows that are one apart."""
        high, above = self.window[0], self.padding[0]
        scale = f" * {1.0 / (self.window[0] * self.window[1])!r}" if self.fn == "mean" else ""
        row = f"pool_row_{name}(x_ptr, {{}}, j, height, width, BLOCK)"
        names = [[f"row_{number}_{place}" for place in range(GROUP)] for number in range(high)]
        lines = [
            *self._head(name, f"tl.arange(0, BLOCK // {GROUP})[:, None] * {GROUP} + tl.arange(0, {GROUP})[None, :]"),
            *(f"    {', '.join(names[n])} = {row.format(plus('first', n - above))}" for n in range(high - 1)),
            "    for i in tl.range(first, last, loop_unroll_factor=UNROLL):",
            f"        {', '.join(names[-1])} = {row.format(plus('i', high - 1 - above))}",
            *(f"        out_{p} = ({join(self.fn, [r[p] for r in names])}){scale}" for p in range(GROUP)),
            "        out = tl.reshape(tl.join(tl.join(out_0, out_2), tl.join(out_1, out_3)), [BLOCK // 4, 4])",
            "        tl.store(out_ptr + i * out_width + j, out, mask=j < out_width)",
            *(f"        {', '.join(kept)} = {', '.join(later)}" for kept, later in itertools.pairwise(names)),
        ]
        return "\n".join(lines)

    def _head(self, name: str, columns: str) -> list[str]:
        """Write the parameters of a kernel, and where its program is."""
        head = ["x_ptr", "out_ptr", "height", "width", "out_height", "out_width"]
        constants = ["ROWS", "BLOCK", "UNROLL", "INDEX"]
        return [
            "@triton.jit",
            f"def pool_{name}({', '.join([*head, *(f'{c}: tl.constexpr' for c in constants)])}):",
            "    strips = tl.cdiv(out_width, BLOCK)",
            "    chunks = tl.cdiv(out_height, ROWS)",
            "    program = tl.program_id(0)",
            f"    j = (program % strips) * BLOCK + {columns}",
            "    first = (program // strips % chunks) * ROWS",
            "    last = tl.minimum(first + ROWS, out_height)",
            "    plane = (program // strips // chunks).to(INDEX)",
            "    x_ptr += plane * height * width",
            "    out_ptr += plane * out_height * out_width",
        ]

    def _row(self, name: str) -> str:
        """Write the function that reduces one row of the input over the width of the windows."""
        steps = []
        for number in range(self.window[1]):
            shift = number * self.dilation[1] - self.padding[1]
            bounds = [f"({plus('column', shift)} >= 0)"] if shift < 0 else []
            mask = " & ".join(["inside", *bounds, f"({plus('column', shift)} < width)"])
            load = f"tl.load({plus('at', shift)}, mask={mask}, other={self._start})"
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
                f"    return {join(self.fn, values)}",
            ]
        )

    def _kernel(self, name: str) -> str:
        """Write the kernel for windows that are further apart."""
        scale = f" * {1.0 / (self.window[0] * self.window[1])!r}" if self.fn == "mean" else ""
        row = f"pool_row_{name}(x_ptr, {{}}, j, height, width)"
        rows = [f"row_{number}" for number in range(self.window[0])]
        top = f"i * {self.stride[0]}" if self.stride[0] > 1 else "i"
        lines = [
            *self._head(name, "tl.arange(0, BLOCK)"),
            "    for i in tl.range(first, last, loop_unroll_factor=UNROLL):",
            f"        top = {plus(top, -self.padding[0])}",
            *(
                f"        {kept} = {row.format(plus('top', number * self.dilation[0]))}"
                for number, kept in enumerate(rows)
            ),
            f"        tl.store(out_ptr + i * out_width + j, ({join(self.fn, rows)}){scale}, mask=j < out_width)",
        ]
        return "\n".join(lines)


def _value(number: int) -> str:
    return f"x_{number}" if number >= 0 else f"x_before_{-number}"


def _pair_of(number: int) -> str:
    return f"pair_{number}" if number >= 0 else f"pair_before_{-number}"


def join(fn: str, parts: list[str]) -> str:
    """Return the maximum of some values, or for a "mean" their sum."""
    if fn == "mean":
        return " + ".join(parts)
    text = parts[0]
    for part in parts[1:]:
        text = f"_max({text}, {part})"
    return text


def plus(text: str, number: int) -> str:
    """Return a place that is so many elements further."""
    return text if number == 0 else f"{text} + {number}" if number > 0 else f"{text} - {-number}"


LAUNCH = '''
def _pool(kernel, x, out, planes, height, width, out_height, out_width):
    """A program for each strip of columns and chunk of rows."""
    block = min(CONFIG["POOL_COLUMNS"], triton.next_power_of_2(out_width))
    rows = min(CONFIG["POOL_ROWS"], out_height)
    grid = (planes * triton.cdiv(out_height, rows) * triton.cdiv(out_width, block),)
    block = max(block, 4)
    warps = max(1, min(CONFIG["POOL_WARPS"], block // 128))
    options = {"UNROLL": CONFIG["POOL_UNROLL"], "INDEX": _index((x, out)), "num_warps": warps}
    kernel[grid](x, out, height, width, out_height, out_width, ROWS=rows, BLOCK=block, **options)
'''
