"""Outputs that only exist because the reference rounds: the low half of a number that is split in two, for example.

In float64 nothing is left of them, and beside zeros every small number is right. Where the reference's own result
hardly moves with the rounding of its inputs, it stands in for the oracle's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from evaluator.child.reference.float64 import widened
from evaluator.comparison.target import Target
from evaluator.subject import Result
from evaluator.types import Precision

_NOTHING_LEFT = 1e-3  # of the reference's own norm
_NEGLIGIBLE = 1e-30  # a norm that is rounding alone, whatever the inputs


def candidates(own: Result, wide: Result) -> list[int]:
    """Return the places of a call's outputs of which hardly anything is left in float64."""
    return [
        place
        for place, (mine, exact) in enumerate(zip(own[1], wide[1], strict=True))
        if mine.is_floating_point() and _norm(mine) > _NEGLIGIBLE and _norm(exact) <= _NOTHING_LEFT * _norm(mine)
    ]


def well_defined(places: Collection[int], own: Result, rounded: Result) -> frozenset[int]:
    """Return those whose values at the reference's precision can be compared. `rounded` is its own result for inputs
    that moved by a rounding: what moves as much as it is large is the noise of a cancellation."""
    return frozenset(place for place in places if _stays(own[1][place], rounded[1][place]))


def with_own(results: Sequence[Result], own: Sequence[Result], places: Collection[int]) -> list[Result]:
    """Return results with the reference's own outputs at these places."""
    if not places:
        return list(results)
    return [
        (structure, [widened(mine[place]) if place in places else t for place, t in enumerate(tensors)])
        for (structure, tensors), (_, mine) in zip(results, own, strict=True)
    ]


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.double()))


def _stays(mine: torch.Tensor, rounded: torch.Tensor) -> bool:
    target = Target(widened(mine), mine)
    return not target.uninformative(target.limit(*target.errors(rounded), mine.dtype, Precision.EXACT, None))
