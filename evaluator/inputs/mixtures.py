"""Mix new inputs for timed calls from a few draws of a recipe, in the time of a few copies."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.inputs import perturbations, values

# A tensor is continuous if this share of this many elements are distinct.
_SAMPLED_ELEMENTS, _DISTINCT_SHARE = 4096, 0.5
_CHANCE_ZEROS_SHARE = 2**-20  # of random numbers are zero, at most
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_BLEND_SHARES = (1 / 64, 1 / 16)  # small, so that the spread of timed values stays nearly the recipe's


def mixing_bases(made: Sequence[values.Tensors], generator: torch.Generator) -> list[values.Tensors]:
    """Return the tensors to mix timed inputs from: the recipe's draws. Where they are all equal, add similar tensors of
    the judge's own, since otherwise every timed input would be equal."""
    if any(not torch.equal(a, b) for a, b in zip(made[0], made[1], strict=True)):
        return list(made)
    return [made[0], *(tuple(perturbations.random_like(t, generator) for t in made[0]) for _ in made[1:])]


def random_masks(
    tensors: values.Tensors, varies: Sequence[bool], generator: torch.Generator
) -> list[torch.Tensor | None]:
    """Return random bits for every element of each random floating tensor, None for others."""
    return [
        torch.randint(
            2, (t.numel(),), generator=values.on_device(generator, t.device), device=t.device, dtype=torch.uint8
        ).bool()
        if change and t.is_floating_point() and t.numel() > 1
        else None
        for t, change in zip(tensors, varies, strict=True)
    ]


def are_continuous(tensors: values.Tensors) -> list[bool]:
    """Tell for each tensor whether values between its own are as usual: it has many different ones, hardly any of them
    zero or whole. Masks, labels and sparse tensors are not continuous."""
    return [_continuous(tensor) for tensor in tensors]


def _continuous(tensor: torch.Tensor) -> bool:
    if tensor.dtype not in (torch.float32, torch.float64) or tensor.numel() < 2:
        return False
    if not bool(torch.isfinite(tensor).all()) or int((tensor == 0).sum()) > _CHANCE_ZEROS_SHARE * tensor.numel():
        return False
    some = tensor.flatten()[:_SAMPLED_ELEMENTS]
    return len(torch.unique(some)) > _DISTINCT_SHARE * len(some) and float((some != some.round()).double().mean()) > 0.5


def mix(
    made: Sequence[values.Tensors],
    masks: Sequence[torch.Tensor | None],
    between: Sequence[bool],
    varies: Sequence[bool],
    generator: torch.Generator,
) -> values.Tensors:
    """Make new inputs from old ones in the time of a few copies.

    Each element of a random floating tensor comes from one of two others, as a mask says. Both tensors and the mask are
    rotated by secret amounts. Other random tensors are only rotated, since their values may have to stay together.
    Where values `between` are as good, each element then moves by a secret share towards an element of a third tensor:
    no single value comes twice, so no kernel can look answers up one by one. Tensors that the recipe always makes alike
    stay the same.
    """
    first, second, *rest = torch.randperm(len(made), generator=generator).tolist()
    third = rest[0] if rest else first
    fresh = []
    for one, other, towards, mask, blend, change in zip(
        made[first], made[second], made[third], masks, between, varies, strict=True
    ):
        if not change or one.numel() < 2:
            fresh.append(one)
            continue
        moved = _rolled(one, generator)
        if mask is not None:
            moved = _chosen(_rolled(mask, generator), moved, _rolled(other, generator))
        if blend:
            low, high = _BLEND_SHARES
            share = low + (high - low) * float(torch.rand((), generator=generator, device=generator.device))
            moved = torch.lerp(moved, _rolled(towards, generator), share)
        moved = moved.reshape(one.shape)
        fresh.append(moved if one.is_contiguous() else values.copy_laid_out(one, moved))
    return tuple(fresh)


def _chosen(mask: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return `torch.where` of three flat tensors. On a CPU that goes element by element, and bits go by vectors."""
    if one.device.type != "cpu":
        return torch.where(mask, one, other)
    kind = _BITS[one.element_size()]
    kept = mask.view(torch.int8).to(kind, copy=True).neg_()
    bits = other.view(kind)
    return kept.bitwise_and_(one.view(kind) ^ bits).bitwise_xor_(bits).view(one.dtype)


def _rolled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    shift = int(torch.randint(1, tensor.numel(), (1,), generator=generator, device=generator.device))
    return tensor.reshape(-1).roll(shift)
