"""Chain the calls of a timed round: a few elements of the next call's inputs depend on the last call's output.

In every 4 KiB of each random input tensor one element is overwritten with one of eight values, which the same 4 KiB of
the first call's input held. The bits of one element of the last output choose the value. For every round the judge
makes the "coefficients": the places of the elements, the output elements to read, the addends to their bits and the
eight values. They become visible with the round's inputs. So a step waits for one load only that depends on the last
output. An input that was left out could be computed for all calls of a round at once, however small it is.

Judge and child run this same code: the child between two calls, the judge on its snapshot of the outputs. A child that
skips the step, merges calls, reorders them or returns incomplete outputs works on other inputs than those that its
outputs are compared for. Values are chosen, never computed, so an input keeps the values that its recipe makes,
for any outputs (NaN too), and repeating a step changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch

from evaluator.child.protocol.layout import WORDS, LayoutError, TensorSpec, overwrite

BLOCK_BYTES = 4096
VALUES = 8
ROWS = 3 + VALUES  # of the coefficients: place, output element, addend, values
MOST_INPUTS = 8  # that one step changes
MIX = 0x9E3779B97F4A7C15 - (1 << 64)
SHIFT = 24
REPLAY_SHIFT = 61  # keeps the top bits, as many as VALUES needs
_FEW = 12  # up to this many positions, Python's own numbers are faster than NumPy's arrays
_NUMPY = {
    torch.float64: "int64", torch.float32: "int32", torch.float16: "int16", torch.int64: "int64", torch.int32: "int32",
    torch.int16: "int16", torch.int8: "uint8", torch.uint8: "uint8", torch.bool: "uint8",
}  # fmt: skip


Numbers = list[tuple[int, int, int, list[int]]]


@dataclass(frozen=True)
class Link:
    """A chain: output tensor `output` changes input tensors `inputs` (positions among a call's tensors).

    The first counts[0] columns of the coefficients are for the first input, the next counts[1] for the second, and so
    on.
    """

    inputs: tuple[int, ...]
    output: int
    counts: tuple[int, ...]
    coefficients: torch.Tensor  # int64, ROWS x positions

    @property
    def captured(self) -> tuple[Any, ...]:
        """Return the parts that are fixed in a captured step."""
        return self.inputs, self.output, self.counts, tuple(self.coefficients.shape)

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Return the columns of each input."""
        ends = list(accumulate(self.counts))
        return tuple(slice(end - count, end) for end, count in zip(ends, self.counts, strict=True))

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Return the input of each column."""
        return tuple(place for place, count in enumerate(self.counts) for _ in range(count))

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """Return the rows of the coefficients as NumPy arrays."""
        return tuple(row.numpy() for row in self.coefficients.unbind())

    @cached_property
    def values(self) -> Any:
        """Return the values as a NumPy array, VALUES x positions."""
        return self.coefficients.numpy()[ROWS - VALUES :]

    @cached_property
    def columns(self) -> Any:
        """Return the number of each position."""
        return torch.arange(self.coefficients.shape[1]).numpy()

    @cached_property
    def places(self) -> tuple[Any, ...]:
        """Return the changed places of each input, as NumPy arrays."""
        return tuple(self.arrays[0][span] for span in self.spans)

    def numbers(self) -> Numbers | None:
        """Return place, output element, addend and values of each position as they are now; None if there are many."""
        if self.coefficients.shape[1] > _FEW:
            return None
        return [(where, read, addend, values) for where, read, addend, *values in self.coefficients.t().tolist()]

    def to_json(self, layout: TensorSpec) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "output": self.output,
            "counts": list(self.counts),
            "layout": layout.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], raw: torch.Tensor) -> Link:
        """Read a chain. Raise LayoutError for one that no judge sends."""
        inputs, counts = tuple(map(int, data["inputs"])), tuple(map(int, data["counts"]))
        coefficients = TensorSpec.from_json(data["layout"]).view(raw)
        alike = len(set(inputs)) == len(inputs) == len(counts) <= MOST_INPUTS
        if not alike or min(inputs, default=-1) < 0 or min(counts) < 1 or coefficients.shape != (ROWS, sum(counts)):
            raise LayoutError(f"a chain of inputs {inputs} in {counts} columns of {tuple(coefficients.shape)}")
        return cls(inputs, int(data["output"]), counts, coefficients)


def dense(tensor: torch.Tensor) -> bool:
    """Return true if a tensor's elements fill its span of memory, each once, in any order."""
    expected = 1
    for size, step in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if size == 1:
            continue
        if step != expected:
            return False
        expected *= size
    return tensor.numel() > 0


def element_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bits of a tensor's elements as one row of integers, in memory order; a view if the tensor is dense."""
    flat = tensor.detach()
    flat = flat.as_strided((tensor.numel(),), (1,)) if dense(tensor) else flat.reshape(-1)
    return flat.view(WORDS.get(tensor.element_size(), torch.int64))


def make_link(
    inputs: Sequence[torch.Tensor],
    indices: Sequence[int],
    output: int,
    output_elements: int,
    generator: torch.Generator,
    excluded: Mapping[int, torch.Tensor | None] | None = None,
) -> Link:
    """Make coefficients for the inputs at `indices`.

    Their tensors are dense and have two elements or more that are not `excluded`, a mask of an input's layout by its
    index.
    """
    masks = excluded or {}
    made = [_columns(inputs[index], output_elements, generator, masks.get(index)) for index in indices]
    return Link(tuple(indices), output, tuple(columns.shape[1] for columns in made), torch.cat(made, 1))


def _columns(
    tensor: torch.Tensor, output_elements: int, generator: torch.Generator, excluded: torch.Tensor | None
) -> torch.Tensor:
    able = None if excluded is None else (element_bits(excluded) == 0).nonzero().flatten().cpu()
    numel = tensor.numel() if able is None else len(able)
    block = max(2, BLOCK_BYTES // tensor.element_size())
    starts = torch.arange(0, numel, block)
    sizes = torch.full_like(starts, block).minimum(numel - starts)
    starts, sizes = starts[sizes > 1], sizes[sizes > 1]
    count = len(starts)

    def below(limit: int, rows: int = 1) -> torch.Tensor:
        return torch.randint(limit, (rows, count), generator=generator, device=generator.device).cpu()

    bits = element_bits(tensor)
    places = starts + below(1 << 40, VALUES + 1) % sizes
    places = places if able is None else able[places]
    rows = torch.cat([places, below(output_elements), below(1 << 40)]).to(bits.device)
    return torch.cat([rows[VALUES:], bits[rows[:VALUES]].to(torch.int64)])


def step(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], link: Link) -> None:
    """Change `inputs`, those of the next call, in place, by the `outputs` of the last one."""
    output = outputs[link.output]
    if inputs[link.inputs[0]].device.type == "cpu":
        step_on_cpu(output, target_arrays(inputs, link), link, link.numbers())
    else:
        _step_by_torch(element_bits(output), [element_bits(inputs[index]) for index in link.inputs], link)


def target_arrays(inputs: Sequence[torch.Tensor], link: Link) -> Any:
    """Return the argument of `step_on_cpu`: the bits of one input as an array, or a tuple of arrays for several."""
    arrays = tuple(element_bits(inputs[index]).numpy() for index in link.inputs)
    return arrays if len(arrays) > 1 else arrays[0]


def step_on_cpu(output: torch.Tensor, target: Any, link: Link, numbers: Numbers | None) -> None:
    """Do the same for `target_arrays`, by the fastest means.

    The cost of our own harness is subtracted. A child may bring a faster harness, so there should be little to gain.
    NumPy needs a seventh of torch's time for so few elements.
    """
    kind = _NUMPY.get(output.dtype)
    if kind is not None and output.is_contiguous():
        source = output.numpy().reshape(-1).view(kind)
    else:
        source = element_bits(output).numpy()
    if numbers is None:
        _step_by_numpy(source, target, link)
    elif type(target) is tuple:
        for owner, (where, read, addend, values) in zip(link.owners, numbers, strict=True):
            target[owner][where] = values[(_mixed(source.item(read)) + addend) & VALUES - 1]
    else:
        for where, read, addend, values in numbers:
            target[where] = values[(_mixed(source.item(read)) + addend) & VALUES - 1]


def _mixed(bits: int) -> int:
    """Mix bits as int64 arithmetic does: the product's low 64 bits, signed, shifted."""
    return ((bits * MIX + (1 << 63) & (1 << 64) - 1) - (1 << 63)) >> SHIFT


def _step_by_numpy(source: Any, target: Any, link: Link) -> None:
    where, read, addend = link.arrays[:3]
    pick = source[read].astype("int64")
    pick *= MIX
    pick >>= SHIFT
    pick += addend
    pick &= VALUES - 1
    chosen = link.values[pick, link.columns]
    if type(target) is not tuple:
        target[where] = chosen
        return
    for one, places, span in zip(target, link.places, link.spans, strict=True):
        one[places] = chosen[span]


def _step_by_torch(source: torch.Tensor, targets: Sequence[torch.Tensor], link: Link) -> None:
    where, read, addend, *_ = link.coefficients.unbind()
    chosen = _chosen(_pick(source.index_select(0, read), addend), link)
    for target, span in zip(targets, link.spans, strict=True):
        target.index_copy_(0, where[span], chosen[span].to(target.dtype))


def step_together(
    outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[Sequence[torch.Tensor]], link: Link
) -> None:
    """Do `step` for many calls by torch, in place: a third of the operations, each of which costs a GPU some
    microseconds."""
    where, read, addend, *_ = link.coefficients.unbind()
    bits = torch.stack([element_bits(some[link.output]).index_select(0, read) for some in outputs])
    chosen = link.coefficients[ROWS - VALUES :].gather(0, _pick(bits, addend))
    for index, span in zip(link.inputs, link.spans, strict=True):
        targets = [element_bits(some[index]) for some in inputs]
        places, found = where[span], chosen[:, span].to(targets[0].dtype)
        for target, row in zip(targets, found, strict=True):
            target.index_copy_(0, places, row)


def _pick(bits: torch.Tensor, addend: torch.Tensor) -> torch.Tensor:
    """Return the numbers of the values that new tensors of output elements' bits select."""
    return bits.to(torch.int64).mul_(MIX).bitwise_right_shift_(SHIFT).add_(addend).bitwise_and_(VALUES - 1)


def _chosen(pick: torch.Tensor, link: Link) -> torch.Tensor:
    """Return the value of each column that its number in `pick` selects."""
    return link.coefficients[ROWS - VALUES :].gather(0, pick.unsqueeze(0)).squeeze(0)


def replay_step(counts: torch.Tensor, inputs: Sequence[torch.Tensor], link: Link) -> None:
    """Change `inputs`, those of the first call, in place, for the replay numbered by `counts`, and count it up.

    `counts` is int64, one number per column. Replay 0 leaves the inputs as granted.
    """
    where, _, addend, *_ = link.coefficients.unbind()
    pick = counts.mul(MIX).mul_(addend.mul(2).add_(1)).bitwise_right_shift_(REPLAY_SHIFT).bitwise_and_(VALUES - 1)
    chosen = _chosen(pick, link)
    for index, span in zip(link.inputs, link.spans, strict=True):
        target, places = element_bits(inputs[index]), where[span]
        kept = target.index_select(0, places)
        target.index_copy_(0, places, torch.where(counts[span] == 0, kept, chosen[span].to(target.dtype)))
    counts.add_(1)


def derive(
    calls: Sequence[Sequence[torch.Tensor]],
    outputs: Sequence[Sequence[torch.Tensor]],
    link: Link | None,
    replays: int = 1,
) -> list[tuple[torch.Tensor, ...]]:
    """Return the inputs that a child must have used in the last replay, from the granted inputs and its outputs."""
    if link is None:
        return [tuple(tensors) for tensors in calls]
    first = calls[0]
    if replays > 1:
        first = _copied(first, link)
        replay_step(torch.full_like(link.coefficients[0], replays - 1), first, link)
    changed = [_copied(tensors, link) for tensors, _ in zip(calls[1:], outputs, strict=False)]
    before = outputs[: len(changed)]
    if any(some[link.output].numel() == 0 for some in before):
        raise LayoutError("an empty output")
    alike = len({(some[link.output].dtype, some[link.output].shape) for some in before}) == 1
    if alike and link.coefficients.device.type != "cpu":
        step_together(before, changed, link)
    else:
        for some, tensors in zip(before, changed, strict=True):
            step(some, tensors, link)
    return [tuple(tensors) for tensors in (first, *changed)]


def _copied(tensors: Sequence[torch.Tensor], link: Link) -> list[torch.Tensor]:
    """Return the same tensors, with copies of those that the chain changes, strides kept."""
    found = list(tensors)
    for index in link.inputs:
        old = tensors[index]
        copy = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype, device=old.device)
        found[index] = overwrite(copy, old)
    return found
