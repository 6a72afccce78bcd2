"""Rows of outputs that follow another choice among tied scores than the reference's.

The largest two of ten equal scores are any two: a kernel keeps the first or the last that it reads, or the one that its
threads reach first. A few choices are tried. A row is right if it equals that of one choice, or if it has the
reference's values in other places and each of them equals that of some choice there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

_EQUAL_SHARE = 1e-5  # of a row's largest value, or of an element's largest alternative


def nearest_rows(actual: torch.Tensor, right: torch.Tensor, alternatives: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return `right` with each row replaced by the nearest of the `alternatives`.

    All have one shape, with at least one axis, and were computed as the oracle is.
    """
    best = right
    for other in (*alternatives, _reordered(actual, right, alternatives)):
        best = torch.where(_worst_difference(actual, other) < _worst_difference(actual, best), other, best)
    return best


def _reordered(actual: torch.Tensor, right: torch.Tensor, alternatives: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the values of each row of `right` in the order of those of `actual`; the row itself where no alternative
    has one of them there."""
    order = actual.argsort(-1).argsort(-1)
    moved = right.sort(-1).values.gather(-1, order)
    seen = torch.stack([_differences(moved, alternative) for alternative in (right, *alternatives)]).amin(0)
    size = right.abs().double().nan_to_num(nan=0.0, posinf=0.0).amax(-1, keepdim=True)
    return torch.where(seen.amax(-1, keepdim=True) <= _EQUAL_SHARE * size, moved, right)


def _worst_difference(actual: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the largest difference of each row."""
    return _differences(actual, right).amax(-1, keepdim=True)


def _differences(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the differences of elements; infinite where one is not finite and the other is not the same."""
    off = (one - other).abs().double().nan_to_num(nan=math.inf, posinf=math.inf)
    return off.masked_fill((one == other) | (one.isnan() & other.isnan()), 0.0)


def where_ties_differ(actual: torch.Tensor, alternatives: Sequence[torch.Tensor]) -> torch.Tensor:
    """Mark where the alternatives differ and `actual` has a number, since yet another choice may give it. An integer
    that is made of an index must lie between those of the alternatives."""
    sizes = torch.stack([alternative.abs().double().nan_to_num(nan=0.0, posinf=0.0) for alternative in alternatives])
    apart = torch.stack([_differences(alternative, alternatives[0]) for alternative in alternatives[1:]])
    able = actual.isfinite()
    if actual.numel() and not (actual.is_floating_point() or actual.is_complex()):
        least, most = torch.stack([*alternatives]).aminmax()
        able = (actual >= least) & (actual <= most)
    return (apart.amax(0) > _EQUAL_SHARE * sizes.amax(0)) & able
