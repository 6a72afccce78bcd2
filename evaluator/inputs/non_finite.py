"""NaN and infinities at places of an input where careless kernels lose them, or see them where they are not."""

from __future__ import annotations

import math

import torch

_AT_BOTH_ENDS_SHARE = 0.5


def nan_in_every_row(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put one NaN into each row at a random place: rows take different branches of a kernel, and so do columns."""
    changed = tensor.clone()
    if tensor.ndim == 0:
        return changed.fill_(math.nan)
    rows = changed.reshape(-1, tensor.shape[-1])
    where = torch.randint(tensor.shape[-1], (len(rows), 1), generator=generator, device=generator.device)
    rows.scatter_(1, where.to(tensor.device), math.nan)
    return rows.reshape(tensor.shape)


def rows_of_minus_infinity(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make one of every three rows minus infinity, beginning at a random one: those of logits that a mask leaves
    nothing of."""
    changed = tensor.clone()
    rows = changed.reshape(-1, tensor.shape[-1] if tensor.ndim else 1)
    first = int(torch.randint(min(len(rows), 3), (1,), generator=generator, device=generator.device))
    rows[first::3] = -math.inf
    return rows.reshape(tensor.shape)


def nan_at_the_end(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Make the last element NaN: it is the last one along every axis, where vectors and blocks leave a rest."""
    changed = tensor.clone()
    changed.reshape(-1)[-1] = math.nan
    return changed


def infinities(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put minus infinity and infinity at random places, or at both ends."""
    changed = tensor.clone().reshape(-1)
    where = torch.randint(len(changed), (2,), generator=generator, device=generator.device).tolist()
    if bool(torch.rand((), generator=generator, device=generator.device) < _AT_BOTH_ENDS_SHARE):
        where = [0, -1]
    changed[where] = torch.tensor([-math.inf, math.inf], dtype=tensor.dtype, device=tensor.device)
    return changed.reshape(tensor.shape)


def opposite_infinities(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put infinities of either sign into one line along every axis of two elements or more: into a row, into a
    column."""
    changed = tensor.clone()
    for axis, size in enumerate(tensor.shape):
        if size > 1:
            first = [_below(length, generator) for length in tensor.shape]
            second = [*first]
            second[axis] = (first[axis] + 1 + _below(size - 1, generator)) % size
            changed[tuple(first)], changed[tuple(second)] = math.inf, -math.inf
    return changed


def _below(bound: int, generator: torch.Generator) -> int:
    return int(torch.randint(bound, (1,), generator=generator, device=generator.device))
