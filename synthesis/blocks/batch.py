"""Batch normalisation by the statistics of the batch with all that follows element by element, in two kernels.

The first one summarises slices of channels. The second one joins the summaries of a channel in every program, and
writes slices in the opposite order: what was read last may still be in the cache. Running statistics, and a counter of
the batches, are written along the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from synthesis.blocks.block import Code, tuple_of
from synthesis.blocks.groups import flat, over_channels, use_norm
from synthesis.blocks.tile import Pen, Tile, evaluate, reads, symbols, whole
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.build import Builder
from synthesis.graph.nodes import Node, is_in_memory
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

BATCH_NORM = "aten.batch_norm.default"
LEAST = 1 << 16  # elements of a channel; smaller ones are left to the library
LEAST_RUN = 32  # neighbours in memory of one channel
TUNABLES = {
    "SLICE": [16384, 8192, 32768],  # elements of a program
    "SLICE_BLOCK": [4096, 2048, 8192],
    "SLICE_WARPS": [8, 4, 16],
}


def use_batch(root: Node, users: Callable[[Node], list[Node]], one: Size) -> bool:
    """Let a block compute `root`, a normalisation by the statistics of its batch or an element-wise result of one that
    has no other use.

    Return whether there is such a block.
    """

    def fit(norm: Node) -> tuple[Batch, list[Node]]:
        block = _fit(root, norm, one)
        return block, [block.x, *block.vectors.values(), *reads([block.out], [block.normal])]

    return use_norm(root, users, BATCH_NORM, fit)


def _fit(root: Node, norm: Node, one: Size) -> Batch:
    args, named = norm.data
    names = ("input", "weight", "bias", "mean", "variance", "training", "momentum", "eps", "cudnn_enabled")
    given = dict(zip(names, args, strict=False)) | named
    x, eps, momentum = given["input"], given["eps"], given["momentum"]
    running = [n for n in (given.get("mean"), given.get("variance")) if n is not None]
    if not given["training"] or len(running) == 1 or not isinstance(momentum, float):
        raise Unsupported("a normalisation by running statistics")
    if any(n.kind != "buffer" or n.dtype != "float32" for n in running):
        raise Unsupported("running statistics of another type")
    if not isinstance(x, Node) or x.rank < 2 or x.dtype not in ("float32", "float16", "bfloat16", "halves"):
        raise Unsupported("a normalisation of something else")
    if not is_in_memory(x) or not isinstance(eps, float) or root.shape != norm.shape:
        raise Unsupported("a normalisation of a view")
    batch, channels, length = x.shape[0], x.shape[1], product(x.shape[2:], one)
    if any(b * n < LEAST for b, n in zip(batch.values, length.values, strict=True)):
        raise Unsupported("short channels")
    if any(n < LEAST_RUN for n in length.values):
        raise Unsupported("channels in short runs")
    build, shape = Builder(one), (batch, channels, length)
    normal = Node("normal", "library", "normal", (), shape, norm.dtype)
    out = flat(root, norm, normal, build, lambda node: over_channels(node, norm, build, shape))
    tile = Tile({"o0": batch, "o1": channels}, length, one)
    value = evaluate(tile, out, (tile.at["o0"], tile.at["o1"], tile.column), [normal])
    vectors = {"weight": given.get("weight"), "bias": given.get("bias")}
    vectors |= dict(zip(("running_mean", "running_variance"), running, strict=False))
    kept = {name: vector for name, vector in vectors.items() if vector is not None}
    return Batch(root, normal, x, kept, batch, channels, length, eps, momentum, value)


@dataclass(slots=True)
class Batch:
    """`x` as (batch, channels, length), and the values that follow from the `normal` ones.

    `vectors` has an element for each channel: weight, bias, and the running statistics that follow those of the batches
    by `momentum`, as far as there are any.
    """

    root: Node
    normal: Node
    x: Node
    vectors: dict[str, Node]
    batch: Size
    channels: Size
    length: Size
    eps: float
    momentum: float
    out: Expr
    title: str = "batch normalisation"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        loads = reads([self.out], [self.normal])
        sizes = symbols([self.out], [self.batch, self.channels, self.length])
        source, tensors = host.contiguous(self.x), [host.contiguous(n) for n in loads]
        vectors = {f"of_{name}": host.contiguous(vector) for name, vector in self.vectors.items()}
        counter = host.take_counter() if "running_mean" in self.vectors else None
        if counter is not None:
            vectors["of_counter"] = counter
        out = host.allocate(node, host.device())
        host.used_symbols |= set(sizes)
        numbers = [host.size(s) for s in (self.batch, self.channels, self.length)]
        given = [tuple_of([*vectors.values(), *tensors]), tuple_of(sizes)]
        kernel = f"normalise_{node.name}"
        host.lines.append(f"_batch({', '.join([kernel, source, out, *numbers, *given])})")
        pen = Pen(self.root.dtype == "float32", {*NAMES.split(), *sizes, *(f"{n.name}_ptr" for n in loads)})
        self._normalise(pen, kernel, [*vectors, *(f"{n.name}_ptr" for n in loads)], sizes)
        return Code([SUMMARISE, "\n".join(pen.lines)], {"batch": LAUNCH}, dict(TUNABLES), pen.pieces)

    def _normalise(self, pen: Pen, name: str, pointers: list[str], sizes: list[str]) -> None:
        """Write the kernel that joins summaries and normalises."""
        listed = ["of_x", *pointers, "out_ptr", "of_means", "of_squares", *sizes, "parts"]
        constants = ("SLICE", "IMAGES", "BLOCK", "WHOLE", "INDEX", "PARTS")
        pen.lines += ["@triton.jit", f"def {name}({', '.join([*listed, *(f'{c}: tl.constexpr' for c in constants)])}):"]
        pen.lines += self._in_sizes(JOIN)
        pen.lines += [f"    {n} = tl.load(of_{n} + o1).to(tl.float32)" for n in ("weight", "bias") if n in self.vectors]
        pen.lines.append(
            f"    scale = 1.0 / tl.sqrt(variance + {self.eps!r}){' * weight' * ('weight' in self.vectors)}"
        )
        if "running_mean" in self.vectors:
            kept, new = repr(1.0 - self.momentum), repr(self.momentum)
            unbiased = "variance * (count / tl.maximum(count - 1.0, 1.0))"
            pen.lines.append("    if part == 0:")
            for at, value in (("of_running_mean + o1", "mean"), ("of_running_variance + o1", unbiased)):
                pen.lines.append(f"        tl.store({at}, tl.load({at}) * {kept} + {value} * {new})")
        if "of_counter" in pointers:
            pen.lines.append("    if tl.program_id(0) == 0:")
            pen.lines.append("        tl.store(of_counter, tl.load(of_counter) + 1)")
        pen.lines += self._in_sizes(STEPS)
        pen.lines.append(f"        normal = (x - mean) * scale{' + bias' * ('bias' in self.vectors)}")
        masks, known = ("inside", "", "inside"), {id(self.normal): "normal"}
        value = pen.writer({"o0", "o1"}, "        ", masks=masks, given=known).value(self.out)
        pen.lines.append(f'        tl.store(out_ptr + at, {value}, mask=inside, eviction_policy="evict_first")')

    def _in_sizes(self, text: str) -> list[str]:
        """Return lines with the texts of the sizes, whose names are the reference's."""
        return re.sub(r"\b(batch|channels|length)\b", lambda n: whole(getattr(self, n.group())), text).splitlines()


SLICED = """    slices = tl.cdiv(length, SLICE)
    channel = program % channels
    part = program // channels
    first = part % slices * SLICE
    image = (part // slices * IMAGES).to(INDEX)
    own = tl.minimum(SLICE, length - first)
    steps = tl.minimum(IMAGES, batch - part // slices * IMAGES) if IMAGES > 1 else tl.cdiv(own, BLOCK)"""
SUMMARISE = f'''@triton.jit
def summarise_slices(
    x_ptr, means_ptr, squares_ptr, batch, channels, length, parts, skip,
    SLICE: tl.constexpr, IMAGES: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, INDEX: tl.constexpr,
):
    """Mean and squared deviations of each slice; every lane keeps its own until the end."""
    program = tl.program_id(0)
{SLICED}
    lanes = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    x_ptr += (image * channels + channel) * length + first
    for step in range(0, steps):
        inside = tl.full([BLOCK], True, tl.int1) if WHOLE else lanes < own - (0 if IMAGES > 1 else step * BLOCK)
        x = tl.load(x_ptr + lanes, mask=inside, other=0).to(tl.float32)
        change = tl.where(inside, x - mean, 0.0)
        mean += change * (1.0 / (step + 1.0))
        square += change * tl.where(inside, x - mean, 0.0)
        x_ptr += skip
    found = tl.where(lanes < own, steps, 0) if IMAGES > 1 else tl.maximum((own - lanes + BLOCK - 1) // BLOCK, 0)
    count = found.to(tl.float32)
    total = tl.sum(tl.where(lanes == 0, mean, 0.0))  # sums of what is apart from it lose no digits far from zero
    total += tl.sum((mean - total) * count) / tl.sum(count)
    tl.store(means_ptr + channel * parts + part, total)
    tl.store(squares_ptr + channel * parts + part, tl.sum(square + count * (mean - total) * (mean - total)))'''


def joined(row: str, counts: str, count: str) -> str:
    """Return the lines that join the summaries of a row: its `mean` and `variance` from those of its slices.

    `counts` are the elements of each slice, `count` all of them. Means are summed relative to one of them, so that sums
    lose no digits far from zero.
    """
    return f"""    other = tl.arange(0, PARTS)
    known = other < parts
    means = tl.load(of_means + {row} * parts + other, mask=known, other=0.0)
    squares = tl.load(of_squares + {row} * parts + other, mask=known, other=0.0)
    counts = tl.where(known, {counts}, 0).to(tl.float32)
    count = {count}
    mean = tl.load(of_means + {row} * parts)
    mean += tl.sum(tl.where(known, means - mean, 0.0) * counts) / count
    apart = tl.where(known, means - mean, 0.0)
    variance = (tl.sum(squares) + tl.sum(apart * apart * counts)) / count"""


JOIN = f"""    \"\"\"Join the summaries of a channel, and write a slice of it: the last ones first.\"\"\"
    zero = tl.zeros([1, 1], tl.float32)
    program = tl.num_programs(0) - 1 - tl.program_id(0)
{SLICED.replace("channel =", "o1 =")}
{
    joined(
        "o1",
        "tl.minimum(IMAGES, batch - other // slices * IMAGES) * tl.minimum(SLICE, length - other % slices * SLICE)",
        "tl.sum(counts)",
    )
}"""
STEPS = """    for step in range(0, steps):
        o0 = image + (step if IMAGES > 1 else 0)
        j = first + (0 if IMAGES > 1 else step * BLOCK) + tl.arange(0, BLOCK)[None, :]
        inside = tl.full([1, BLOCK], True, tl.int1) if WHOLE else j < length
        at = (o0 * channels + o1) * length + j
        x = tl.load(of_x + at, mask=inside, other=0, eviction_policy="evict_first").to(tl.float32)"""
NAMES = (
    "zero program slices o0 o1 part first image own steps other known means squares counts count mean apart j at"
    " variance scale weight bias step inside x normal parts of_x of_means of_squares"
)
LAUNCH = '''
def _batch(kernel, x, out, batch, channels, length, tensors, sizes):
    """A program for each slice of a channel, which is several images where these are short."""
    slice_, block = CONFIG["SLICE"], min(CONFIG["SLICE_BLOCK"], triton.next_power_of_2(length))
    while slice_ > block and batch * channels * length < 4 * _processors(x.device) * slice_:
        slice_ //= 2
    while batch * triton.cdiv(length, slice_) > 512 and slice_ < length:
        slice_ *= 2  # every program of the second kernel reads the summaries of a channel
    images = max(1, min(slice_ // length, batch)) if length <= block else 1
    parts = triton.cdiv(batch, images) * triton.cdiv(length, slice_)
    summary = [torch.empty((channels, parts), dtype=torch.float32, device=x.device) for _ in range(2)]
    options = {"SLICE": slice_, "IMAGES": images, "BLOCK": block, "WHOLE": length % block == 0}
    options |= {"INDEX": _index((x, *tensors)), "num_warps": min(CONFIG["SLICE_WARPS"], max(1, block // 128))}
    grid, skip = (parts * channels,), channels * length if images > 1 else block
    summarise_slices[grid](x, *summary, batch, channels, length, parts, skip, **options)
    kernel[grid](x, *tensors, out, *summary, *sizes, parts, PARTS=triton.next_power_of_2(parts), **options)
'''
