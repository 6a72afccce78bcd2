"""Compare many outputs of one layout at once.

Timed rounds have up to a hundred calls, most of them small. Compared one by one, each takes a dozen operations on the
device and waits for the answer of most: on a GPU that takes longer than the calls themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from evaluator.comparison.expected import Expected
from evaluator.comparison.scales import LEAST_FILL, LEAST_ROW_LENGTH, LEAST_ROW_SHARE
from evaluator.comparison.tolerances import Limit

_MOST_ELEMENTS = {"cpu": 1 << 14, "cuda": 1 << 21}  # of an output: more take longer than the operations' overhead
_TOGETHER_ELEMENTS = 1 << 22  # of the outputs that are stacked at a time
_LEAST_NORM = 1e-140  # smaller ones may underflow
Tensors = Sequence[torch.Tensor]


def clearly_right(like: Expected, results: Sequence[Tensors], outputs: Sequence[Tensors]) -> list[bool]:
    """Return for each call whether `Target.compare` with the limits of `like` would surely find nothing.

    `results` are the oracle's, `outputs` those to compare; both have a tensor for each target of `like`. False tells
    nothing: so it is where values are not finite or large, where dtypes cannot be added up, and near a limit.
    """
    if not results or len({len(one) for one in (*results, *outputs, like.targets)}) > 1:
        return [False] * len(results)
    right: list[torch.Tensor] = []
    for limit, right_ones, actual_ones in zip(
        like.limits, zip(*results, strict=True), zip(*outputs, strict=True), strict=True
    ):
        if not _stackable([*right_ones], [*actual_ones]):
            return [False] * len(results)
        parts = [
            _within(torch.stack(right_ones[some]), torch.stack(actual_ones[some]), limit)
            for some in _parts(len(right_ones), right_ones[0].numel())
        ]
        right.append(torch.cat(parts))
    return [bool(one) for one in torch.stack(right).all(0).tolist()]


def equal(some: Tensors, others: Tensors) -> list[bool]:
    """Return for each pair of tensors whether all elements are equal. Where false, NaN may be the reason."""
    if not some or not _stackable(some, others) or some[0].dtype is not others[0].dtype:
        return [torch.equal(one, other) for one, other in zip(some, others, strict=True)]
    found = [
        (torch.stack([*some[part]]) == torch.stack([*others[part]])).reshape(len(some[part]), -1).all(1)
        for part in _parts(len(some), some[0].numel())
    ]
    return [bool(one) for one in torch.cat(found).tolist()]


def _stackable(some: Tensors, others: Tensors) -> bool:
    """Return whether all tensors of either list are small and alike, and those of both of one shape."""
    alike = all(len({(t.shape, t.dtype, t.device) for t in tensors}) == 1 for tensors in (some, others))
    one, other = some[0], others[0]
    fits = 0 < one.numel() <= _MOST_ELEMENTS.get(one.device.type, 0)
    return alike and fits and (one.shape, one.device) == (other.shape, other.device)


def _parts(count: int, elements: int) -> list[slice]:
    step = max(1, _TOGETHER_ELEMENTS // elements)
    return [slice(begin, begin + step) for begin in range(0, count, step)]


def _within(right: torch.Tensor, actual: torch.Tensor, limit: Limit) -> torch.Tensor:
    """Return a boolean for each call along the first axis. `Target` has the same errors and scales."""
    if right.ndim == 1:  # numbers, not tensors
        right, actual = right[:, None], actual[:, None]
    if not right.is_floating_point() and not right.is_complex():
        same: torch.Tensor = (right == actual).flatten(1).all(1)
        return same
    if right.is_complex() or not actual.is_floating_point() or actual.element_size() == 1:
        return torch.zeros(len(right), dtype=torch.bool, device=right.device)
    right = right.to(torch.float64)
    difference = torch.sub(right, actual)
    norm = torch.linalg.vector_norm(right.flatten(1), dim=1)
    usual = (right.abs().flatten(1).amax(1) <= LEAST_FILL) & (norm > _LEAST_NORM)
    near = torch.linalg.vector_norm(difference.flatten(1), dim=1) <= limit.norm * norm
    most, scale = _errors_and_scales(right, difference.abs_(), norm)
    within: torch.Tensor = usual & near & (most <= limit.element * scale).flatten(1).all(1)
    return within


def _errors_and_scales(
    right: torch.Tensor, error: torch.Tensor, norm: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest errors and the scales of rows, of columns where rows are short, or of whole outputs."""
    elements, columns = right[0].numel(), right.shape[-1] if right.ndim > 2 else 0
    whole = norm / math.sqrt(elements)
    if columns >= LEAST_ROW_LENGTH:
        axis, rows = -1, right.flatten(1, -2)
    elif columns and elements >= LEAST_ROW_LENGTH * columns:
        axis, rows = 1, right.reshape(len(right), -1, columns)
    else:
        return error.flatten(1).amax(1, keepdim=True), whole[:, None]
    sizes = torch.linalg.vector_norm(rows, dim=axis) / math.sqrt(rows.shape[axis])
    return error.reshape(rows.shape).amax(axis), torch.maximum(sizes, LEAST_ROW_SHARE * whole[:, None])
