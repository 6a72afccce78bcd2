"""Batch normalisation by the statistics of the batch, in two kernels.

The first one summarises slices of channels. The second one joins the summaries of a channel in every program, and
normalises slices in the opposite order: what was read last may still be in the cache. Running statistics, and a counter
of the batches, are written along the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code
from synthesis.errors import Unsupported
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


def fit(root: Node, one: Size) -> tuple[Batch, list[Node]]:
    """Return the block for a normalisation by the statistics of its batch, and what it reads. Raise Unsupported."""
    args, named = root.data
    names = ("input", "weight", "bias", "mean", "variance", "training", "momentum", "eps", "cudnn_enabled")
    given = dict(zip(names, args, strict=False)) | named
    x, eps, momentum = given["input"], given["eps"], given["momentum"]
    running = tuple(n for n in (given.get("mean"), given.get("variance")) if n is not None)
    if not given["training"] or len(running) == 1 or not isinstance(momentum, float):
        raise Unsupported("a normalisation by running statistics")
    if any(n.kind != "buffer" or n.dtype != "float32" for n in running):
        raise Unsupported("running statistics of another type")
    if not isinstance(x, Node) or x.rank < 2 or x.dtype not in ("float32", "float16", "bfloat16", "halves"):
        raise Unsupported("a normalisation of something else")
    if not is_in_memory(x) or not isinstance(eps, float):
        raise Unsupported("a normalisation of a view")
    batch, channels, length = x.shape[0], x.shape[1], product(x.shape[2:], one)
    if any(b * n < LEAST for b, n in zip(batch.values, length.values, strict=True)):
        raise Unsupported("short channels")
    if any(n < LEAST_RUN for n in length.values):
        raise Unsupported("channels in short runs")
    weight, bias = given.get("weight"), given.get("bias")
    read = [n for n in (x, weight, bias, *running) if n is not None]
    return Batch(x, weight, bias, batch, channels, length, eps, running, momentum), read


@dataclass(slots=True)
class Batch:
    """`x` as (batch, channels, length), with a scale and a shift for each channel.

    `running` are the mean and the variance that follow those of the batches by `momentum`, or nothing.
    """

    x: Node
    weight: Node | None
    bias: Node | None
    batch: Size
    channels: Size
    length: Size
    eps: float
    running: tuple[Node, ...] = ()
    momentum: float = 0.0
    title: str = "batch normalisation"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernels, and their launch."""
        source = host.contiguous(self.x)
        named = {"weight": self.weight, "bias": self.bias}
        named |= dict(zip(("running_mean", "running_variance"), self.running, strict=False))
        vectors = {name: host.contiguous(vector) for name, vector in named.items() if vector is not None}
        counter = host.take_counter() if self.running else None
        if counter is not None:
            vectors["counter"] = counter
        out = host.allocate(node, host.device())
        sizes = ", ".join(host.size(s) for s in (self.batch, self.channels, self.length))
        kernel = f"normalise_{node.name}"
        host.lines.append(f"_batch({kernel}, {', '.join([source, out, sizes, *vectors.values()])})")
        return Code([SUMMARISE, self._normalise(kernel, list(vectors))], {"batch": LAUNCH}, dict(TUNABLES))

    def _normalise(self, name: str, vectors: list[str]) -> str:
        """Write the kernel that joins summaries and normalises."""
        lines = [f"    {n} = tl.load({n}_ptr + channel).to(tl.float32)" for n in ("weight", "bias") if n in vectors]
        lines.append(f"    scale = 1.0 / tl.sqrt(variance + {self.eps!r}){' * weight' * ('weight' in vectors)}")
        if self.running:
            kept, new = repr(1.0 - self.momentum), repr(self.momentum)
            unbiased = "variance * (count / tl.maximum(count - 1.0, 1.0))"
            lines.append("    if part == 0:")
            for running, value in (("running_mean", "mean"), ("running_variance", unbiased)):
                at = f"{running}_ptr + channel"
                lines.append(f"        tl.store({at}, tl.load({at}) * {kept} + {value} * {new})")
        if "counter" in vectors:
            lines.append("    if tl.program_id(0) == 0:")
            lines.append("        tl.store(counter_ptr, tl.load(counter_ptr) + 1)")
        text = NORMALISE.replace("NAME", name).replace("POINTERS", "".join(f"{n}_ptr, " for n in vectors))
        value = "(x - mean) * scale" + (" + bias" if "bias" in vectors else "")
        return text.replace("    LINES", "\n".join(lines)).replace("VALUE", value)


SLICED = """    slices = tl.cdiv(length, SLICE)
    channel = program % channels
    part = program // channels
    first = part % slices * SLICE
    image = (part // slices * IMAGES).to(INDEX)
    own = tl.minimum(SLICE, length - first)
    steps = tl.minimum(IMAGES, batch - part // slices * IMAGES) if IMAGES > 1 else tl.cdiv(own, BLOCK)
    place = (image * channels + channel) * length + first
    lanes = tl.arange(0, BLOCK)"""
SUMMARISE = f'''@triton.jit
def summarise_slices(
    x_ptr, means_ptr, squares_ptr, batch, channels, length, parts, skip,
    SLICE: tl.constexpr, IMAGES: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, INDEX: tl.constexpr,
):
    """Mean and squared deviations of each slice; every lane keeps its own until the end."""
    program = tl.program_id(0)
{SLICED}
    mean = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    x_ptr += place
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
NORMALISE = f'''@triton.jit
def NAME(
    x_ptr, POINTERSout_ptr, means_ptr, squares_ptr, batch, channels, length, parts, skip,
    SLICE: tl.constexpr, IMAGES: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, INDEX: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Join the summaries of a channel, and normalise a slice of it: the last ones first."""
    program = tl.num_programs(0) - 1 - tl.program_id(0)
{SLICED}
    other = tl.arange(0, PARTS)
    known = other < parts
    means = tl.load(means_ptr + channel * parts + other, mask=known, other=0.0)
    squares = tl.load(squares_ptr + channel * parts + other, mask=known, other=0.0)
    images = tl.minimum(IMAGES, batch - other // slices * IMAGES)
    counts = tl.where(known, images * tl.minimum(SLICE, length - other % slices * SLICE), 0).to(tl.float32)
    count = tl.sum(counts)
    mean = tl.load(means_ptr + channel * parts)
    mean += tl.sum(tl.where(known, means - mean, 0.0) * counts) / count
    apart = tl.where(known, means - mean, 0.0)
    variance = (tl.sum(squares) + tl.sum(apart * apart * counts)) / count
    LINES
    x_ptr += place
    out_ptr += place
    for step in range(0, steps):
        inside = tl.full([BLOCK], True, tl.int1) if WHOLE else lanes < own - (0 if IMAGES > 1 else step * BLOCK)
        x = tl.load(x_ptr + lanes, mask=inside, other=0, eviction_policy="evict_first").to(tl.float32)
        tl.store(out_ptr + lanes, VALUE, mask=inside, eviction_policy="evict_first")
        x_ptr += skip
        out_ptr += skip'''
LAUNCH = '''
def _batch(kernel, x, out, batch, channels, length, *vectors):
    """A program for each slice of a channel, which is several images where these are short."""
    slice_, block = CONFIG["SLICE"], min(CONFIG["SLICE_BLOCK"], triton.next_power_of_2(length))
    while batch * triton.cdiv(length, slice_) > 512 and slice_ < length:
        slice_ *= 2  # every program of the second kernel reads the summaries of a channel
    images = max(1, min(slice_ // length, batch)) if length <= block else 1
    parts = triton.cdiv(batch, images) * triton.cdiv(length, slice_)
    summary = [torch.empty((channels, parts), dtype=torch.float32, device=x.device) for _ in range(2)]
    options = {"SLICE": slice_, "IMAGES": images, "BLOCK": block, "WHOLE": length % block == 0}
    options |= {"INDEX": _index((x,)), "num_warps": min(CONFIG["SLICE_WARPS"], max(1, block // 128))}
    grid, skip = (parts * channels,), channels * length if images > 1 else block
    sizes = (*summary, batch, channels, length, parts, skip)
    summarise_slices[grid](x, *sizes, **options)
    kernel[grid](x, *vectors, out, *sizes, PARTS=triton.next_power_of_2(parts), **options)
'''
