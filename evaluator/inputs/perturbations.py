"""Changed copies of a call's tensors: other last places, elements or rows, or finite values for NaN and infinities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch

from evaluator.child.protocol.layout import overwrite
from evaluator.inputs.values import (
    GRID,
    Rounding,
    Tensors,
    clone,
    copy_laid_out,
    finite_elements,
    is_finite,
    on_device,
    workable,
)

_FlatIndex = TypeVar("_FlatIndex", int, torch.Tensor)
_MOST_SWAPPED = 1 << 16  # elements: choosing more takes long
_ROWS_WITH_PEAKS = 4
_LEAST_UNITS, _WORD_BYTES = 2, 4
SLIGHT_CHANGES = {"every element changed by a 500th": 2**-9, "every element changed by a 100000th": 2**-17}
"""Shares for `all_slightly_smaller`: coarse for tasks that are known to few digits, fine for all others."""
LARGEST = 1e30  # in place of infinity
_DATA_DTYPES, _DATA_RANGE_SHARE = (torch.uint8, torch.int8, torch.int16, torch.uint16), 0.5


def perturb_last_places(tensors: Sequence[torch.Tensor], generator: torch.Generator, how: Rounding) -> Tensors:
    """Move every element of float32 and float64 tensors by `ulps` units in the last place, up or down at random.

    By more than one unit they also move all together, as the rounding of a long sum of equal terms does. With `on_grid`
    multiples of a 64th stay where they are. The oracle's response shows how well the task is conditioned. Half
    precisions stay as they are, since an output is rounded by one of their units anyway, unless they are `denormal`.
    """
    ulps = how.ulps
    moved = []
    for tensor in tensors:
        copy = clone(tensor)
        if how.denormal and tensor.dtype in (torch.float16, torch.bfloat16) and tensor.numel():
            overwrite(copy, _rounded_as_denormal(tensor, generator))
        elif tensor.dtype in (torch.float32, torch.float64) and tensor.numel():
            own = on_device(generator, tensor.device)
            up = torch.randint(2, tensor.shape, generator=own, device=tensor.device, dtype=torch.int8)
            units = up.to(tensor.dtype) * 2 - (1 if ulps == 1 else 0)
            step = units * (ulps * torch.finfo(tensor.dtype).eps)
            moves = torch.isfinite(tensor)
            if how.on_grid:
                moves &= (tensor * GRID).frac() != 0
            overwrite(copy, torch.where(moves, tensor * (1 + step), tensor))
        moved.append(copy)
    return tuple(moved)


def _rounded_as_denormal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Move one in eight of the elements that are denormal by their unit, which moves a sum as rounding each of them
    does: the result of a product that is denormal itself has no digits below that unit."""
    kind = torch.finfo(tensor.dtype)
    own = on_device(generator, tensor.device)
    draw = torch.randint(16, tensor.shape, generator=own, device=tensor.device, dtype=torch.int8)
    units = (draw == 0).to(torch.float64) - (draw == 1).to(torch.float64)
    wide = tensor.double()
    moves = (wide != 0) & (wide.abs() < kind.smallest_normal)
    return torch.where(moves, wide + units * (kind.smallest_normal * kind.eps), wide).to(tensor.dtype)


def extremes(draws: Sequence[Tensors]) -> Tensors | None:
    """Return the first draw with whole rows of the largest and of the smallest value of all draws; None where nothing
    changes.

    Only tensors of 8 or 16 bits that hold most of their type's range change: they are data, whereas wider integers may
    be indices.
    """
    made = [clone(tensor) for tensor in draws[0]]
    found = False
    for index, copy in enumerate(made):
        if copy.dtype not in _DATA_DTYPES or copy.ndim == 0 or copy.numel() == 0:
            continue
        every = [workable(tensors[index]) for tensors in draws]
        low, high = min(int(t.min()) for t in every), max(int(t.max()) for t in every)
        range_ = torch.iinfo(copy.dtype)
        if high - low < _DATA_RANGE_SHARE * (range_.max - range_.min):
            continue
        rows = every[0].clone().reshape(-1, copy.shape[-1] if copy.ndim > 1 else copy.numel())
        rows[0 :: max(2, len(rows) // 4)] = high
        rows[1 :: max(2, len(rows) // 4)] = low
        overwrite(copy, rows.reshape(copy.shape))
        found = True
    return tuple(made) if found else None


def replace_infinities(tensors: Sequence[torch.Tensor]) -> Tensors:
    """Replace infinities by numbers of their sign, as large as the type allows but no larger than LARGEST."""
    made = []
    for tensor in tensors:
        most = min(LARGEST, torch.finfo(tensor.dtype).max) if tensor.is_floating_point() else 0.0
        kept = is_finite(tensor)
        if not kept:
            numbers = torch.nan_to_num(workable(tensor), nan=torch.nan, posinf=most, neginf=-most)
            tensor = copy_laid_out(tensor, numbers)
        made.append(tensor)
    return tuple(made)


def replace_non_finite(tensors: Sequence[torch.Tensor], group: Mapping[int, float | None], share: float) -> Tensors:
    """Replace NaN and infinities of the tensors at some positions, or only the infinity that the group names.

    The new value is `share` spreads above the smallest finite value; a spread is at least one.
    """
    made = list(tensors)
    for position, sign in group.items():
        tensor, finite = tensors[position], finite_elements(tensors[position])
        usual = tensor[finite].double()
        low, high = (float(usual.min()), float(usual.max())) if len(usual) else (0.0, 1.0)
        most = torch.finfo(tensor.dtype).max
        replaced = ~finite if sign is None else tensor == sign
        value = min(max(low + share * max(1.0, high - low), -most), most)
        made[position] = copy_laid_out(tensor, workable(tensor).masked_fill(replaced, value))
    return tuple(made)


def random_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return random values like those of a floating tensor: positive ones stay positive, others move by their own
    spread. Elements that are not finite stay (a mask). The parts of complex numbers are treated alike. Other tensors
    are copied."""
    if tensor.is_complex():
        return copy_laid_out(
            tensor, torch.view_as_complex(random_like(torch.view_as_real(tensor), generator).contiguous())
        )
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return clone(tensor)
    wide, finite = tensor.to(torch.float32), finite_elements(tensor)
    usual = wide[finite]
    if not len(usual):
        return clone(tensor)
    noise = torch.randn(tensor.shape, generator=on_device(generator, tensor.device), device=tensor.device)
    if bool((usual > 0).all()):
        return copy_laid_out(tensor, torch.where(finite, wide * torch.exp(0.3 * noise), wide))
    spread = float(usual.std()) if len(usual) > 1 else 0.0
    spread = spread if spread > 0 and math.isfinite(spread) else 0.1 * max(1.0, float(usual.abs().max()))
    mean = float(usual.mean())
    made = (mean if math.isfinite(mean) else 0.0) + spread * noise
    return copy_laid_out(tensor, torch.where(finite, made, wide))


def near_duplicate(
    tensors: Sequence[torch.Tensor], varies: Sequence[bool], generator: torch.Generator, *, slightly: bool = False
) -> Tensors:
    """Change one element of each random floating tensor: a memo by samples takes the inputs for equal. Where it changes
    `slightly`, by less than a hundredth, so does a memo by means that nearly agree."""
    changed = []
    for tensor, change in zip(tensors, varies, strict=True):
        copy = clone(tensor)
        if change and tensor.is_floating_point() and tensor.numel():
            where = int(torch.randint(tensor.numel(), (1,), generator=generator, device=generator.device))
            index = _index(where, tuple(tensor.shape))
            value = workable(tensor[index])
            value = value * (1 + 2**-7) if slightly else value * -1.5 + 1.0
            copy[index] = copy_laid_out(tensor[index], value)
        changed.append(copy)
    return tuple(changed)


def all_slightly_smaller(tensor: torch.Tensor, generator: torch.Generator, most: float) -> torch.Tensor:
    """Copy a tensor with each element smaller by a random share of itself, of `most` at most: a comparison up to a
    tolerance takes both for equal. Types without that many digits stay as they are. So do signs, zeros and bounds."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or most < _LEAST_UNITS * torch.finfo(tensor.dtype).eps:
        return tensor
    own = on_device(generator, tensor.device)
    kind = torch.float32 if tensor.element_size() < _WORD_BYTES else tensor.dtype.to_real()
    share = torch.rand(tensor.shape, generator=own, device=tensor.device, dtype=kind)
    return copy_laid_out(tensor, tensor * (1 - most * share))


def with_element_of(
    tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator, where: int | None = None
) -> torch.Tensor:
    """Copy a tensor, with one element of another: that at `where` (negative: counted from the end), or a random one."""
    copy = clone(tensor)
    if where is None:
        where = int(torch.randint(tensor.numel(), (1,), generator=generator, device=generator.device))
    index = _index(where % tensor.numel(), tuple(tensor.shape))
    copy[index] = other[index]
    return copy


def with_two_swapped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Copy a tensor with two random elements swapped."""
    copy = clone(tensor)
    one, other = torch.randint(tensor.numel(), (2,), generator=generator, device=generator.device).tolist()
    here, there = (_index(flat, tuple(tensor.shape)) for flat in (one, other))
    copy[here], copy[there] = tensor[there], tensor[here]
    return copy


def with_some_swapped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Copy a tensor with every sixteenth element, at random, moved to the place of another one. Its sum and its largest
    element stay the same, and few of its elements differ."""
    count = min(_MOST_SWAPPED, max(2, tensor.numel() // 16))
    places = torch.randint(tensor.numel(), (count,), generator=generator, device=generator.device)
    places = torch.unique(places).to(tensor.device)
    before = workable(tensor).flatten()
    after = before.clone()
    after[places] = before[places.roll(1)]
    return copy_laid_out(tensor, after.reshape(tensor.shape))


def with_peaks_swapped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Copy a tensor with the largest element of each of a few random rows swapped with a random one of its row. Where
    the largest inputs decide the outputs, as in softmax, that is visible, and eight elements differ at most."""
    before = workable(tensor).reshape(-1, tensor.shape[-1] if tensor.ndim else 1)
    count, width = before.shape
    device = generator.device
    rows = torch.unique(torch.randint(count, (_ROWS_WITH_PEAKS,), generator=generator, device=device)).to(tensor.device)
    places = torch.randint(width, rows.shape, generator=generator, device=device).to(tensor.device)
    peaks = torch.argmax(before[rows], dim=1)
    after = before.clone()
    after[rows, places], after[rows, peaks] = before[rows, peaks], before[rows, places]
    return copy_laid_out(tensor, after.reshape(tensor.shape))


def _index(flat: _FlatIndex, shape: tuple[int, ...]) -> tuple[_FlatIndex, ...]:
    """Return the index by axis of a flat index, or of several. `torch.unravel_index` imports sympy, which takes
    seconds."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat = flat // size
    return tuple(index[::-1])
