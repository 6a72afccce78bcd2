"""Fresh inputs for timed calls at the speed of a few copies: mixed from a few draws of a recipe."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.inputs import perturbations, values

# Elements that are looked at, and the share of them that must differ, before a tensor counts as continuous.
_SAMPLED_ELEMENTS, _DISTINCT_SHARE = 4096, 0.5
_CHANCE_ZEROS_SHARE = 2**-20  # of random numbers, at the most, are zero
_BLEND_SHARES = (1 / 64, 1 / 16)  # how far timed values move towards others: their spread stays nearly the recipe's


def mixing_bases(made: Sequence[values.Tensors], generator: torch.Generator) -> list[values.Tensors]:
    """What timed inputs are mixed from: what the recipe made, and where it always makes the same, tensors like that of
    the judge's own, lest every timed input be equal."""
    if any(not torch.equal(a, b) for a, b in zip(made[0], made[1], strict=True)):
        return list(made)
    return [made[0], *(tuple(perturbations.random_like(t, generator) for t in made[0]) for _ in made[1:])]


def random_masks(
    tensors: values.Tensors, varies: Sequence[bool], generator: torch.Generator
) -> list[torch.Tensor | None]:
    """Random masks, one for every element of each random floating tensor; for others None."""
    return [
        torch.randint(
            2, (t.numel(),), generator=values.on_device(generator, t.device), device=t.device, dtype=torch.uint8
        ).bool()
        if change and t.is_floating_point() and t.numel() > 1
        else None
        for t, change in zip(tensors, varies, strict=True)
    ]


def are_continuous(tensors: values.Tensors) -> list[bool]:
    """Which tensors hold so many different values, hardly any of them zero or whole, that those in between are like
    them: no masks, labels, or sparse ones."""
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
    """Fresh content from old at the speed of a few copies. Of each random floating tensor every element comes from one
    of two others, each rotated by a secret amount, as masks say that are rotated by a third; other random tensors, whose
    values may have to stay together, are rotated. Where values in `between` are as good, each then moves by a secret
    share towards an element of a third tensor: no single value comes twice, so nobody can look answers up one by one.
    values.Tensors that the recipe always makes alike are the same."""
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
            moved = torch.where(_rolled(mask, generator), moved, _rolled(other, generator))
        if blend:
            low, high = _BLEND_SHARES
            share = low + (high - low) * float(torch.rand((), generator=generator, device=generator.device))
            moved = torch.lerp(moved, _rolled(towards, generator), share)
        moved = moved.reshape(one.shape)
        fresh.append(moved if one.is_contiguous() else values.clone(one).copy_(moved))
    return tuple(fresh)


def _rolled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    shift = int(torch.randint(1, tensor.numel(), (1,), generator=generator, device=generator.device))
    return tensor.reshape(-1).roll(shift)
