"""Other masks where they are drawn element by element: padded ones, and ones that have as many elements.

Padded rows begin or end with many equal elements, as in a batch of texts of different lengths. A blockwise kernel then
meets blocks without any element, which random masks never contain. Rotated rows have as many elements at other places:
what a kernel keeps by their number is stale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator.inputs import structure, values
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle

_LEAST_LENGTH = 8  # of a row


def with_padding(oracle: Oracle, tree: Any, draws: Sequence[values.Tensors]) -> values.Tensors | None:
    """Return a draw with padded masks: half of the rows with false elements, half with true ones, at either end.

    Returns None if no mask is random, or if the reference does not accept the result: it must return the same shapes as
    for draws, without further NaN. Raises ChildFault where its process ends.
    """
    return _with_masks(oracle, tree, draws, _padded_lines)


def with_rotated_rows(oracle: Oracle, tree: Any, draws: Sequence[values.Tensors]) -> values.Tensors | None:
    """Return a draw with the rows of its masks rotated, or None as `with_padding` does. Raises ChildFault where its
    process ends."""
    return _with_masks(oracle, tree, draws, _rotated_lines)


def _with_masks(
    oracle: Oracle,
    tree: Any,
    draws: Sequence[values.Tensors],
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor],
) -> values.Tensors | None:
    made = list(draws[0])
    for index, tensor in enumerate(draws[0]):
        if _is_random([draw[index] for draw in draws]):
            made[index] = change(tensor, oracle.generator)
    return constants.accepted(oracle, tree, draws[0], tuple(made))


def _is_random(masks: Sequence[torch.Tensor]) -> bool:
    """Return True if the masks of several draws show no structure.

    Their rows and counts of true elements vary; they are not padded, not made of equal blocks, not symmetric, not
    triangular.
    """
    first = masks[0]
    if first.dtype is not torch.bool or first.ndim == 0 or first.shape[-1] < _LEAST_LENGTH:
        return False
    if math.prod(first.shape[1:-1]) != 1 or any(values.same_bits(first, other) for other in masks[1:]):
        return False
    lines = torch.cat([mask.reshape(-1, mask.shape[-1]) for mask in masks]).cpu()
    changes = lines[:, 1:] != lines[:, :-1]
    places = torch.nonzero(changes.any(0)).flatten() + 1
    block = math.gcd(*places.tolist()) if len(places) else 0
    in_order = int(changes.sum(1).max()) < 2
    columns = [mask.reshape(-1, mask.shape[-1]).sum(0) for mask in masks if len(lines) > len(masks)]
    counts_vary = all(len(torch.unique(counts)) > 1 for counts in (lines.sum(1), *columns))
    return block == 1 and not in_order and counts_vary and not any(_regular(mask) for mask in masks)


def _regular(mask: torch.Tensor) -> bool:
    """Return True if a matrix is symmetric or triangular."""
    square = mask.reshape(-1, mask.shape[-1])
    if square.shape[0] != square.shape[1]:
        return False
    return structure.is_symmetric(square) or not bool(square.triu(1).any()) or not bool(square.tril(-1).any())


def _rotated_lines(mask: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    shift = int(torch.randint(1, mask.shape[-1], (1,), generator=generator, device=generator.device))
    return values.copy_laid_out(mask, mask.roll(shift, -1))


def _padded_lines(mask: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    lines = mask.reshape(-1, mask.shape[-1]).cpu()
    count, length = lines.shape
    ends = torch.randint(length, (count, 1), generator=generator, device=generator.device).cpu()
    ends[0] = length - 1
    value, at_the_end = (torch.randint(2, (2, count, 1), generator=generator, device=generator.device) > 0).cpu()
    places = torch.arange(length)
    places = torch.where(at_the_end, length - 1 - places, places)
    made = torch.where(places < ends, value, lines)
    made = torch.where(places == length - 1, ~value, made)  # no row is constant
    return values.copy_laid_out(mask, made.reshape(mask.shape))
