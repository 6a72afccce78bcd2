"""Values of the inputs that a Candidate is checked on: variations of `get_inputs` that careless kernels get wrong.

The judge derives everything from the reference's own inputs with its own randomness. Integer tensors (indices, labels,
masks) keep values that the recipe made, since no others are known to be valid; `evaluator.oracle.constants` varies
those that it always makes alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from evaluator.child.cpu_device import FRESH_BYTE
from evaluator.child.protocol.layout import overwrite
from evaluator.inputs import non_finite

Tensors = tuple[torch.Tensor, ...]
Item = TypeVar("Item")
_AT_ENDS_SHARE = 0.25  # of the rows
_MOST_FIRST_FLAT_ROW = 3  # the first flat row differs between inputs
_ZEROS_SHARE = 1 / 8
_HALVES_SHARE, _LEAST_ON_GRID_SHARE = 1 / 16, 0.01
GRID = 64.0  # steps of a 64th
_MOST_AT_THE_END, _TIMES_AT_THE_END = 17, 1e3
_IMAGE_AXES = 4
_COLUMN_SPREADS, _FEW_COLUMN_SPREADS, _LEAST_AXES_OF_COLUMNS = 300, 30, 2
_FAR_SPREADS = 100  # far enough that exponentials overflow
_WORKABLE = {
    **dict.fromkeys((torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu), torch.float32),
    **dict.fromkeys((torch.float8_e4m3fnuz, torch.float8_e5m2fnuz), torch.float32),
    **{torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64},
}


@dataclass(frozen=True, slots=True)
class Rounding:
    """The effect of an honest implementation's rounding on some inputs: it may seem to move them by so many `ulps`.

    Among timed calls limits are `slack` times as wide. Hundreds of calls are compared, and the chain mixes usual values
    with small or equal ones, which those swamp in a serial sum.
    """

    ulps: int = 1
    slack: float = 2.0
    on_grid: bool = False  # values on thresholds of comparisons are not moved
    # Where the rounding of sums makes limits too wide to tell anything, limits follow from the inputs' rounding alone.
    sums_optional: bool = False
    denormal: bool = False  # half precisions move, too: a product of such values rounds to a whole denormal unit


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A named change of floating inputs: `change(tensor, generator)` returns a tensor of the same layout."""

    name: str
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor]
    # On constant rows the rounding errors of an honest sum are systematic, so it may seem to move inputs further.
    rounding: Rounding = Rounding(ulps=3)
    infinite: bool = False
    only_finite_results: bool = False  # how a reference overflows tells nothing
    nan_is_free: bool = False  # where the reference has NaN from these, a kernel may have anything
    only_floats: bool = False  # integers that are made of such values, and selections by them, are not compared
    least_axes: int = 0  # of one tensor of a call; with fewer the set changes nothing, or as another one does


def shuffled(items: Sequence[Item], generator: torch.Generator) -> list[Item]:
    """Return the items in an unpredictable order."""
    return [items[index] for index in torch.randperm(len(items), generator=generator).tolist()]


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """Return a generator for tensors of that device, seeded by `generator`. Large tensors are made where
    they are used."""
    if device.type == generator.device.type:
        return generator
    seed = int(torch.randint(1 << 62, (1,), generator=generator, device=generator.device))
    return torch.Generator(device).manual_seed(seed)


def apply(value_set: ValueSet, tensors: Sequence[torch.Tensor], generator: torch.Generator) -> Tensors:
    """Return copies with changed floating and complex tensors, in the same layouts. Infinities leave complex tensors
    unchanged, since implementations disagree on products of infinite complex numbers."""
    changed = []
    for tensor in tensors:
        made = tensor
        if tensor.is_floating_point() and tensor.numel():
            made = value_set.change(workable(tensor), generator)
        elif tensor.is_complex() and tensor.numel() and not value_set.infinite:
            parts = value_set.change(torch.view_as_real(tensor.resolve_conj()), generator)
            made = torch.view_as_complex(parts.contiguous())
        changed.append(copy_laid_out(tensor, made))
    return tuple(changed)


def bytes_of(tensors: Sequence[torch.Tensor]) -> int:
    """Return the bytes of all elements."""
    return sum(t.numel() * t.element_size() for t in tensors)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors of one layout hold the same bits, NaN included."""
    if torch.equal(a, b):
        return True
    a, b = (
        t.flatten().clone(memory_format=torch.contiguous_format) for t in (a, b)
    )  # a single element may have any stride
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def clone(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with the same strides, overlapping ones too."""
    return copy_laid_out(tensor, tensor)


def copy_laid_out(like: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the strides and dtype of `like` and the values of `source`, which has its shape. Finite
    values that an 8-bit float cannot hold become its largest."""
    copy = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
    if like.dtype in _WORKABLE and like.is_floating_point() and source.dtype is not like.dtype:
        most = torch.finfo(like.dtype).max
        source = torch.where(torch.isfinite(source), source.clamp(-most, most), source)
    return overwrite(copy, source)


def workable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a dtype that torch computes with and that holds the same values: float32 for 8-bit floats,
    wider signed integers for unsigned ones of more than 8 bits. (int64 holds the bits of uint64.)"""
    return tensor.to(_WORKABLE.get(tensor.dtype, tensor.dtype))


def _scaled(factor: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    return lambda tensor, generator: (tensor.double() * factor).to(tensor.dtype)


def _huge(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Scale by 10000. Scale float16, with its small largest number, by 1000: an honest attention with fused
    multiplications and additions takes products up to such numbers."""
    return _scaled(1e3 if tensor.dtype is torch.float16 else 1e4)(tensor, generator)


def _beyond(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Scale by 4e9, beyond a float's integers and 32 bits; scale float16, which has no such numbers, as
    `_huge` does."""
    return _huge(tensor, generator) if tensor.dtype is torch.float16 else _scaled(4e9)(tensor, generator)


def _spread(least: float, most: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Scale every element by a factor of its own, all magnitudes equally likely."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        own = on_device(generator, tensor.device)
        share = torch.rand(tensor.shape, generator=own, device=tensor.device, dtype=torch.float64)
        return (tensor.double() * least * (most / least) ** share).to(tensor.dtype)

    return change


def _offset(tensor: torch.Tensor, generator: torch.Generator, times: float = 30.0) -> torch.Tensor:
    wide = tensor.double()
    spread = float(wide[torch.isfinite(wide)].std()) if tensor.numel() > 1 else 1.0
    return (wide + times * (spread if math.isfinite(spread) else 1.0)).to(tensor.dtype)


def _far(times: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Move float32 and float64 tensors so many standard deviations up. Other types have too few digits for that."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return _offset(tensor, generator, times) if tensor.dtype in (torch.float32, torch.float64) else tensor

    return change


def _a_few_spreads(up: int) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Move a tensor a few standard deviations up (1) or down (-1), into the tails of functions that end as a
    constant."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        share = float(torch.rand((), generator=generator, device=generator.device))
        return _offset(tensor, generator, up * (3 + 5 * share))

    return change


def _negative_zeros(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make some elements zero, every second of them negative: equal numbers with other bits."""
    own = on_device(generator, tensor.device)
    coin = torch.rand(tensor.shape, generator=own, device=tensor.device)
    zero = torch.where(coin < _ZEROS_SHARE / 2, -0.0, 0.0).to(tensor.dtype)
    return torch.where(coin < _ZEROS_SHARE, zero, tensor)


def _below(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make all elements negative, where a maximum that starts at zero is wrong; at times so far that exponentials are
    zero."""
    times = 20 + 65 * float(torch.rand((), generator=generator, device=generator.device))
    return -_offset(tensor, generator, times).abs()


def _unlike_rows(least: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Give at least that share of the rows an offset of their own and a scale of up to ten times more or less, and put
    one row far above: a statistic of all rows together, or of some of them, fits none."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        rows = tensor.double().reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else tensor.double().reshape(1, -1)
        finite = rows[torch.isfinite(rows)]
        spread = float(finite.std()) if len(finite) > 1 else 1.0
        own = on_device(generator, tensor.device)
        share, place, coin = torch.rand((3, len(rows), 1), generator=own, device=tensor.device, dtype=torch.float64)
        changed = (rows + 60 * (place - 0.5) * spread) * torch.pow(10.0, 2 * share - 1)
        made = torch.where(coin < least, changed, rows)
        made = torch.where(coin == coin.min(), rows + _FAR_SPREADS * spread, made)
        return made.reshape(tensor.shape).to(tensor.dtype)

    return change


def _unlike_along(axis: int) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Give each index of an axis an offset of its own, up to hundreds of standard deviations, and a scale of up to ten
    times more or less: one offset for the whole tensor fits no statistic over the other axes. Types of few digits get
    tens of standard deviations."""

    def change(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.ndim < _LEAST_AXES_OF_COLUMNS:
            return tensor
        wide = tensor.double()
        finite = wide[torch.isfinite(wide)]
        spread = float(finite.std()) if len(finite) > 1 else 1.0
        most = _COLUMN_SPREADS if tensor.dtype in (torch.float32, torch.float64) else _FEW_COLUMN_SPREADS
        shape = [size if place == axis % tensor.ndim else 1 for place, size in enumerate(tensor.shape)]
        own = on_device(generator, tensor.device)
        share, place = torch.rand((2, *shape), generator=own, device=tensor.device, dtype=torch.float64)
        made: torch.Tensor = (wide + 2 * most * (place - 0.5) * spread) * torch.pow(10.0, 2 * share - 1)
        return made.to(tensor.dtype)

    return change


def _flat_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make some rows zero and some constant. They are other rows for every input, so that one input's zeros meet usual
    values of another's."""
    changed = tensor.clone()
    if tensor.ndim == 0:
        return changed.zero_()
    rows = changed.reshape(-1, tensor.shape[-1]) if tensor.ndim > 1 else changed.reshape(1, -1)
    first = int(torch.randint(min(len(rows), _MOST_FIRST_FLAT_ROW), (1,), generator=generator, device=generator.device))
    rows[first :: max(2, len(rows) // 4)] = 0
    rows[first + 1 :: max(2, len(rows) // 3)] = 0.7310585
    return rows.reshape(tensor.shape)


def _equal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, 1.375)


def _denormal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make every element denormal: smaller than the smallest normal number of its type, by a factor of up
    to sixteen."""
    wide = tensor.double()
    largest = float(wide[torch.isfinite(wide)].abs().max()) if tensor.numel() else 0.0
    return (wide / (largest or 1.0) * torch.finfo(tensor.dtype).tiny).to(tensor.dtype)


def _one_large(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put one element so large into every row that its exp overflows: a softmax must subtract the maximum. In many rows
    it is the first or the last one: values relative to it are far off."""
    changed = tensor.clone()
    if tensor.ndim == 0:
        return changed.fill_(90.0)
    rows = changed.reshape(-1, tensor.shape[-1])
    own = on_device(generator, tensor.device)
    where = torch.randint(tensor.shape[-1], (len(rows), 1), generator=own, device=tensor.device)
    coin = torch.rand((len(rows), 1), generator=own, device=tensor.device)
    where[coin < _AT_ENDS_SHARE] = tensor.shape[-1] - 1
    where[coin < _AT_ENDS_SHARE / 2] = 0
    rows.scatter_(1, where, 100.0)
    return rows.reshape(tensor.shape)


def _large_at_the_end(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make the last element, and up to sixteen before it, a thousand times as large as any: a sum of millions changes
    visibly without them. Leave images alone: fast convolutions mix neighbours, and small ones lose their digits."""
    if tensor.ndim >= _IMAGE_AXES:
        return tensor
    changed = tensor.clone().reshape(-1)
    count = 1 + int(torch.randint(_MOST_AT_THE_END, (1,), generator=generator, device=generator.device))
    largest = tensor.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max()
    steps = torch.linspace(0.5, 1.0, min(count, len(changed)), dtype=torch.float64, device=tensor.device)
    changed[-count:] = (_TIMES_AT_THE_END * largest * steps).to(tensor.dtype)
    return changed.reshape(tensor.shape)


def _halves(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Round a few elements to whole and half numbers, which meet thresholds and ties exactly, and as many to 64ths,
    where quantisations have their ties. No negative zeros. If all elements were such, long sums would round in one
    direction."""
    own = on_device(generator, tensor.device)
    coin = torch.rand(tensor.shape, generator=own, device=tensor.device)
    wide = tensor.double()
    grid = torch.where(coin < _HALVES_SHARE / 2, 2.0, GRID)
    return torch.where(coin < _HALVES_SHARE, (grid * wide).round() / grid + 0.0, wide).to(tensor.dtype)


_SWAMPED = Rounding(ulps=3, slack=100.0)
_COARSE = Rounding(ulps=1024, slack=100.0, denormal=True)  # a denormal number times a thousandth loses ten bits
LARGE = ValueSet("100 times larger", _scaled(100.0))
BEYOND = ValueSet("thousands of millions of times larger", _beyond, only_finite_results=True)
SMALL = ValueSet("10000 times smaller", _scaled(1e-4), _SWAMPED)
HUGE = ValueSet("thousands of times larger", _huge)
TINY = ValueSet("scaled by 1e-20", _scaled(1e-20), _SWAMPED)
DENORMAL = ValueSet("denormal numbers", _denormal, _COARSE)
LARGE_ONES = ValueSet("one large element in every row", _one_large)
LARGE_END = ValueSet("large elements at the end", _large_at_the_end, only_finite_results=True)
OFFSET = ValueSet("far from zero", _offset)
A_LITTLE_ABOVE = ValueSet("a few standard deviations above zero", _a_few_spreads(1))
A_LITTLE_BELOW = ValueSet("a few standard deviations below zero", _a_few_spreads(-1))
# Nothing is left of a variance in float32 that is the difference of two means. A serial sum of such values is off by
# many units in the last place.
THOUSAND_SPREADS = ValueSet(
    "a thousand standard deviations from zero",
    _far(1e3),
    Rounding(ulps=32, sums_optional=True),
    only_finite_results=True,
    only_floats=True,
)
TEN_THOUSAND_SPREADS = ValueSet(
    "ten thousand standard deviations from zero",
    _far(1e4),
    Rounding(ulps=8),
    only_finite_results=True,
    only_floats=True,
)
NEGATIVE_ZEROS = ValueSet("zeros of both signs here and there", _negative_zeros, only_finite_results=True)
UNLIKE_ROWS = ValueSet("rows unlike each other", _unlike_rows(1.0))
FEW_UNLIKE = ValueSet("a few rows unlike the others", _unlike_rows(1 / 64))
UNLIKE_COLUMNS = ValueSet("columns unlike each other", _unlike_along(-1), Rounding(ulps=8), only_floats=True)
UNLIKE_CHANNELS = ValueSet(
    "channels unlike each other", _unlike_along(1), Rounding(ulps=8), only_floats=True, least_axes=3
)
BELOW = ValueSet("all far below zero", _below)
HALVES = ValueSet("whole and half numbers here and there", _halves, Rounding(ulps=3, on_grid=True))
FLAT_ROWS = ValueSet("zero and constant rows", _flat_rows, _SWAMPED)
EQUAL = ValueSet("all equal", _equal, _SWAMPED)
ZERO = ValueSet("all zero", lambda tensor, _: torch.zeros_like(tensor), _SWAMPED)
WITH_NAN = ValueSet("a NaN at the end", non_finite.nan_at_the_end)
NAN_ROWS = ValueSet("a NaN in every row", non_finite.nan_in_every_row)
WITH_INF = ValueSet("infinities", non_finite.infinities, infinite=True)
INF_LINES = ValueSet("infinities of either sign in one line", non_finite.opposite_infinities, infinite=True)
# Where nothing is left, a kernel may give zeros for what is masked out, for example. And selections among them are not
# compared: one by one, with minus infinity for what was taken, gives an index twice.
NOTHING_LEFT = ValueSet(
    "rows of minus infinity", non_finite.rows_of_minus_infinity, infinite=True, nan_is_free=True, only_floats=True
)

# Two sets, since a wrong element is negligible next to elements a thousand times as large.
SMALLER = ValueSet("up to 100 times smaller", _spread(0.01, 1.0))
LARGER = ValueSet("up to 100 times larger", _spread(1.0, 100.0))

_NOT_FINITE_SETS = (WITH_NAN, NAN_ROWS, WITH_INF, INF_LINES, NOTHING_LEFT)
NEARLY_ZERO = frozenset((TINY.name, DENORMAL.name))  # a softmax of such scores is the same for all

# A careless kernel reads zeros beyond an edge: they are large compared with values far below zero, and significant
# compared with small ones.
AT_EDGES = (BELOW, SMALL)
# At sizes of no Workload a kernel may take another, less careful branch. One more set is added there in turn.
AT_OTHER_SIZES = (*AT_EDGES, LARGE, NAN_ROWS)
# Sets among timed calls: none that a processor computes more slowly than other values.
TIMED = (LARGE, LARGE_ONES, OFFSET, FLAT_ROWS, WITH_NAN, WITH_INF)
ADVERSARIAL = (
    LARGE, HUGE, BEYOND, LARGER, SMALL, SMALLER, TINY, DENORMAL, LARGE_ONES, LARGE_END,
    OFFSET, A_LITTLE_ABOVE, A_LITTLE_BELOW, THOUSAND_SPREADS, TEN_THOUSAND_SPREADS,
    UNLIKE_ROWS, FEW_UNLIKE, UNLIKE_COLUMNS, UNLIKE_CHANNELS, BELOW,
    HALVES, NEGATIVE_ZEROS, FLAT_ROWS, EQUAL, ZERO, *_NOT_FINITE_SETS,
)  # fmt: skip


# A reference need not survive these on a GPU, where an index out of range costs it its device.
NOT_FINITE, UNUSUAL = "values that are not finite", "values that no draw holds"


def usable_sets(
    kinds: Sequence[ValueSet], left_out: Collection[str], tensors: Sequence[torch.Tensor]
) -> list[ValueSet]:
    """Return the value sets for a call's tensors, without values that are left out."""
    if UNUSUAL in left_out:
        return []
    axes = max((tensor.ndim for tensor in tensors if tensor.is_floating_point()), default=0)
    able = [kind for kind in kinds if kind.least_axes <= axes]
    return [kind for kind in able if NOT_FINITE not in left_out or kind not in _NOT_FINITE_SETS]


def in_turn(kinds: Sequence[ValueSet], turns: Counter[str], generator: torch.Generator) -> list[ValueSet]:
    """Return the value set that had the fewest turns, a random one of several, and count its turn. The list is empty
    if `kinds` is."""
    if not kinds:
        return []
    picked = min(shuffled(kinds, generator), key=lambda kind: turns[kind.name])
    turns[picked.name] += 1
    return [picked]


def holds_uninitialised_memory(tensor: torch.Tensor) -> bool:
    """Return whether any element of a child's output on a CPU still holds the bytes that its allocator had put there
    (`child.cpu_device.CpuDevice.poisoned`). Of single bytes that cannot be told."""
    if tensor.device.type != "cpu" or tensor.element_size() == 1 or tensor.numel() == 0:
        return False
    flat = tensor.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)
    return bool((flat.reshape(-1, tensor.element_size()) == FRESH_BYTE).all(1).any())


def on_grid(tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether any float32 or float64 tensor holds more than a few nonzero multiples of a 64th."""
    wide = (tensor for tensor in tensors if tensor.dtype in (torch.float32, torch.float64) and tensor.numel())
    shares = (((tensor * GRID).frac() == 0) & (tensor != 0) for tensor in wide)
    return any(float(share.double().mean()) > _LEAST_ON_GRID_SHARE for share in shares)


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds no NaN and no infinities."""
    return not tensor.is_floating_point() or bool(finite_elements(tensor).all())


def finite_elements(tensor: torch.Tensor) -> torch.Tensor:
    return torch.isfinite(workable(tensor))
