"""Batch normalisation by the statistics of the batch, in one kernel, channel after channel.

Programs take tickets. With its ticket a program either summarises a slice of a channel, or normalises one, once all
summaries of the channel are there. What it reads then may still be in the cache: the more so the fewer tickets are out
at once, which is what programs that stay and take one ticket after the other are for. A program waits only for tickets
before its own, so the kernel ends however few programs run at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.blocks.block import Code, is_in_memory
from synthesis.errors import Unsupported
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Size, product
from synthesis.host import Host

BATCH_NORM = "aten.batch_norm.default"
LEAST = 1 << 16  # elements of a channel; smaller ones are left to the library
TUNABLES = {
    "SLICE": [16384, 8192, 32768],  # elements of a program
    "SLICE_BLOCK": [4096, 2048, 8192],
    "SLICE_WARPS": [8, 4, 16],
    "SLICE_RESIDENT": [0, 1, 2, 4],  # programs of a multiprocessor that stay; 0: a program for each ticket
}


def fit(root: Node, one: Size) -> tuple[Batch, list[Node]]:
    """Return the block for a normalisation by the statistics of its batch, and what it reads. Raise Unsupported."""
    args, named = root.data
    names = ("input", "weight", "bias", "mean", "variance", "training", "momentum", "eps", "cudnn_enabled")
    given = dict(zip(names, args, strict=False)) | named
    x, eps = given["input"], given["eps"]
    if not given["training"] or given.get("mean") is not None or given.get("variance") is not None:
        raise Unsupported("running statistics")
    if not isinstance(x, Node) or x.rank < 2 or x.dtype not in ("float32", "float16", "bfloat16", "halves"):
        raise Unsupported("a normalisation of something else")
    if not is_in_memory(x) or not isinstance(eps, float):
        raise Unsupported("a normalisation of a view")
    batch, channels, length = x.shape[0], x.shape[1], product(x.shape[2:], one)
    if any(b * n < LEAST for b, n in zip(batch.values, length.values, strict=True)):
        raise Unsupported("short channels")
    weight, bias = given.get("weight"), given.get("bias")
    read = [n for n in (x, weight, bias) if n is not None]
    return Batch(x, weight, bias, batch, channels, length, eps), read


@dataclass(slots=True)
class Batch:
    """`x` as (batch, channels, length), with a scale and a shift for each channel."""

    x: Node
    weight: Node | None
    bias: Node | None
    batch: Size
    channels: Size
    length: Size
    eps: float
    title: str = "batch normalisation"

    def write(self, host: Host, node: Node) -> Code:
        """Write the kernel, and its launch."""
        source = host.contiguous(self.x)
        vectors = [host.contiguous(v) for v in (self.weight, self.bias) if v is not None]
        out = host.allocate(node, host.device())
        sizes = ", ".join(host.size(s) for s in (self.batch, self.channels, self.length))
        host.lines.append(f"_batch(normalise_{node.name}, {source}, {out}, {sizes}, {', '.join(vectors)})")
        loads = [
            f"            {name} = tl.load({name}_ptr + channel).to(tl.float32)"
            for name, vector in (("weight", self.weight), ("bias", self.bias))
            if vector is not None
        ]
        value = "(x - mean) * scale" + (" + bias" if self.bias is not None else "")
        pointers = "".join(f"{name}_ptr, " for name in ("weight", "bias") if getattr(self, name) is not None)
        text = KERNEL.replace("NAME", f"normalise_{node.name}").replace("POINTERS", pointers)
        text = text.replace("    LOADS", "\n".join(loads)).replace("VALUE", value).replace("EPS", repr(self.eps))
        text = text.replace("SCALE", "* weight" if self.weight is not None else "* 1.0")
        return Code([SUMMARISE, text], {"batch": LAUNCH}, dict(TUNABLES))


SUMMARISE = '''@triton.jit
def _summarise_slice(x_ptr, length, BLOCK: tl.constexpr):
    """Mean and squared deviations of a slice; every lane keeps its own until the end."""
    lanes = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    steps = 0.0
    for start in tl.range(0, length, BLOCK):
        inside = start + lanes < length
        x = tl.load(x_ptr + start + lanes, mask=inside, other=0, eviction_policy="evict_last").to(tl.float32)
        steps += 1.0
        change = tl.where(inside, x - mean, 0.0)
        mean += change * (1.0 / steps)
        square += change * tl.where(inside, x - mean, 0.0)
    count = tl.maximum((length - lanes + BLOCK - 1) // BLOCK, 0).to(tl.float32)
    total = tl.sum(mean * count) / length
    return total, tl.sum(square + count * (mean - total) * (mean - total))'''
KERNEL = '''@triton.jit
def NAME(
    x_ptr, POINTERSout_ptr, means_ptr, squares_ptr, state_ptr, batch, channels, length,
    SLICE: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
    STAYS: tl.constexpr,
):
    """Ticket after ticket: the slices of a channel to summarise, then the same ones to normalise."""
    slices = tl.cdiv(length, SLICE)
    parts = batch * slices
    tickets = 2 * parts * channels
    ticket = tl.atomic_add(state_ptr, 1)
    while ticket < tickets:
        channel = ticket // (2 * parts)
        place_in_turn = ticket % (2 * parts)
        summarises = place_in_turn < parts
        part = tl.where(summarises, place_in_turn, 2 * parts - 1 - place_in_turn)  # what was read last comes first
        first = (part % slices) * SLICE
        own = tl.minimum(SLICE, length - first)
        place = ((part // slices).to(INDEX) * channels + channel) * length + first
        lanes = tl.arange(0, BLOCK)
        if summarises:
            mean, square = _summarise_slice(x_ptr + place, own, BLOCK)
            tl.store(means_ptr + channel * parts + part, mean)
            tl.store(squares_ptr + channel * parts + part, square)
            tl.debug_barrier()
            tl.atomic_add(state_ptr + 1 + channel, 1, sem="release")
        else:
            while tl.atomic_add(state_ptr + 1 + channel, 0, sem="acquire") < parts:
                pass
            tl.debug_barrier()
            other = tl.arange(0, PARTS)
            known = other < parts
            means = tl.load(means_ptr + channel * parts + other, mask=known, other=0.0, cache_modifier=".cg")
            squares = tl.load(squares_ptr + channel * parts + other, mask=known, other=0.0, cache_modifier=".cg")
            counts = tl.where(known, tl.minimum(SLICE, length - (other % slices) * SLICE), 0).to(tl.float32)
            count = batch * length * 1.0
            mean = tl.sum(means * counts) / count
            apart = tl.where(known, means - mean, 0.0)
            variance = (tl.sum(squares) + tl.sum(apart * apart * counts)) / count
    LOADS
            scale = 1.0 / tl.sqrt(variance + EPS) SCALE
            for start in tl.range(0, own, BLOCK):
                inside = start + lanes < own
                at = place + start + lanes
                x = tl.load(x_ptr + at, mask=inside, other=0, eviction_policy="evict_first").to(tl.float32)
                tl.store(out_ptr + at, VALUE, mask=inside, eviction_policy="evict_first")
        ticket = tl.atomic_add(state_ptr, 1) if STAYS else tickets'''
LAUNCH = '''
def _batch(kernel, x, out, batch, channels, length, *vectors):
    """Two programs for each slice of a channel."""
    slice_, block = CONFIG["SLICE"], min(CONFIG["SLICE_BLOCK"], triton.next_power_of_2(length))
    parts = batch * triton.cdiv(length, slice_)
    summary = [torch.empty((channels, parts), dtype=torch.float32, device=x.device) for _ in range(2)]
    state = torch.zeros(1 + channels, dtype=torch.int32, device=x.device)
    options = {"PARTS": triton.next_power_of_2(parts), "INDEX": _index((x,)), "num_warps": CONFIG["SLICE_WARPS"]}
    resident = CONFIG["SLICE_RESIDENT"]
    programs = min(2 * parts * channels, resident * _processors(x.device) or 2 * parts * channels)
    options |= {"SLICE": slice_, "BLOCK": block, "STAYS": resident > 0}
    kernel[(programs,)](x, *vectors, out, *summary, state, batch, channels, length, **options)
'''
