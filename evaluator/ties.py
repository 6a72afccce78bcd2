"""Indices of equal values: which of several equal maxima comes first is nobody's business but the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

_LOOKED_AT = 4096  # elements of an input


def equal_by_value(inputs: Sequence[torch.Tensor], expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Whether both index tensors pick the same values out of one input along one axis, and pick none twice that the
    expected one does not."""
    if expected.dtype not in (torch.int32, torch.int64) or expected.numel() == 0:
        return False
    places = list(_places(inputs, expected.to(torch.int64), actual.to(torch.int64)))
    # A mask beside what is picked from has equal values nearly everywhere: it counts where nothing tells more.
    telling = [place for place in places if _has_many_values(place[0])]
    return any(_same_picks(*place) for place in telling or places)


def _has_many_values(tensor: torch.Tensor) -> bool:
    """More than two, of those that are looked at."""
    flat = tensor.reshape(-1)
    return len(set(flat[:: max(1, flat.numel() // _LOOKED_AT)].tolist())) > 2


def _places(
    inputs: Sequence[torch.Tensor], expected: torch.Tensor, actual: torch.Tensor
) -> Iterator[tuple[torch.Tensor, int, torch.Tensor, torch.Tensor]]:
    """Every (input, axis) that the indices may point into, with the indices shaped for `gather`."""
    for tensor in (one for one in inputs if one.dtype is not torch.bool):
        for axis in range(tensor.ndim):
            rest = (*tensor.shape[:axis], *tensor.shape[axis + 1 :])
            if tuple(expected.shape) == rest:
                yield tensor, axis, expected.unsqueeze(axis), actual.unsqueeze(axis)
            elif expected.ndim == tensor.ndim and (*expected.shape[:axis], *expected.shape[axis + 1 :]) == rest:
                yield tensor, axis, expected, actual
        if expected.ndim == 0 and tensor.ndim:
            yield tensor.reshape(-1), 0, expected.reshape(1), actual.reshape(1)


def _same_picks(tensor: torch.Tensor, axis: int, expected: torch.Tensor, actual: torch.Tensor) -> bool:
    size = tensor.shape[axis]
    if any(int(found.min()) < 0 or int(found.max()) >= size for found in (expected, actual)):
        return False
    one, other = tensor.gather(axis, expected), tensor.gather(axis, actual)
    if not bool(((one == other) | ((one != one) & (other != other))).all()):  # NaN equals NaN
        return False
    return _repeats(actual, axis) <= _repeats(expected, axis)


def _repeats(indices: torch.Tensor, axis: int) -> int:
    ordered = indices.sort(dim=axis).values
    length = ordered.shape[axis]
    return int((ordered.narrow(axis, 1, length - 1) == ordered.narrow(axis, 0, length - 1)).sum()) if length > 1 else 0
