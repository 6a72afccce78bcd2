"""Structure that all draws of a recipe share and derived inputs keep: a triangle of zeros, symmetry, order.

A recipe that always leaves the same part of a matrix zero, or always makes it symmetric, does so on purpose: a kernel
for triangular matrices need not read zeros. Tensors that never vary have no structure.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from evaluator.inputs import values

_CHANCE_ZEROS_SHARE = 0.01  # of zeros; random numbers hold one in 16 million, in half precisions one in thousands


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of one input.

    `zeros` are elements that are zero in every draw, while hardly any draw has others. `symmetric` concerns the last
    two axes, `in_order` the last one.
    """

    zeros: torch.Tensor | None = None
    symmetric: bool = False
    in_order: bool = False

    def __bool__(self) -> bool:
        return self.zeros is not None or self.symmetric or self.in_order

    def restored(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the input's shape, layout and dtype with this structure."""
        if not self:
            return tensor
        made = values.workable(tensor)
        made = made.masked_fill(self.zeros, 0) if self.zeros is not None else made
        if self.symmetric:  # keep NaN and infinities of either side
            upper = torch.where(made.mT.isfinite(), made, made.mT).triu()
            made = upper + upper.triu(1).mT
        if self.in_order:
            made = made.sort(-1).values
        return values.copy_laid_out(tensor, made)


def find_structures(made: Sequence[values.Tensors]) -> list[Structure]:
    """Return the structure of each input from several draws; none where they are equal or only one is given."""
    return [_find_structure([tensors[index] for tensors in made]) for index in range(len(made[0]))]


def apply_values(
    tensors: values.Tensors, kind: values.ValueSet, structures: Sequence[Structure], generator: torch.Generator
) -> values.Tensors:
    """Apply a value set to a call's inputs, as far as their structure allows it: sorted values get no NaN or
    infinities."""
    made = values.apply(kind, tensors, generator)
    pairs = zip(tensors, made, structures, strict=True)
    return tuple(
        old if one.in_order and not bool(values.finite_elements(new).all()) else one.restored(new)
        for old, new, one in pairs
    )


def restored(tensors: values.Tensors, structures: Sequence[Structure]) -> values.Tensors:
    """Return a call's inputs, each with its structure."""
    return tuple(one.restored(tensor) for tensor, one in zip(tensors, structures, strict=True))


def _find_structure(draws: Sequence[torch.Tensor]) -> Structure:
    first = draws[0]
    plain = first.dtype is torch.bool or first.is_complex() or first.numel() < 2
    if len(draws) < 2 or plain or any(values.same_bits(first, other) for other in draws[1:]):
        return Structure()
    draws = [values.workable(draw) for draw in draws]
    in_order = all(map(_is_sorted, draws))
    if not first.is_floating_point():
        return Structure(in_order=in_order)
    return Structure(_zeros(draws), all(map(is_symmetric, draws)), in_order)


def _zeros(draws: Sequence[torch.Tensor]) -> torch.Tensor | None:
    each = [draw == 0 for draw in draws]
    always = functools.reduce(torch.logical_and, each)
    count = int(always.sum())
    by_chance = max(int(zeros.sum()) for zeros in each) - count
    return always if count and by_chance <= _CHANCE_ZEROS_SHARE * count else None


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Return whether the last two axes are symmetric, and longer than one."""
    square = tensor.ndim > 1 and tensor.shape[-1] == tensor.shape[-2] > 1
    return square and torch.equal(tensor, tensor.transpose(-1, -2))


def _is_sorted(tensor: torch.Tensor) -> bool:
    if tensor.ndim == 0 or tensor.shape[-1] < 3:
        return False
    return bool((tensor[..., 1:] >= tensor[..., :-1]).all()) and bool((tensor[..., -1] > tensor[..., 0]).all())
