"""Memory layouts of inputs, as of a caller's slice or transpose: for a `general` domain."""

from __future__ import annotations

import math

import torch

from evaluator.inputs import values

_LEAST_OUTER_AXES = 3  # with fewer there are no outer axes to exchange
_MOST_ALONE = 3  # inputs that each get another layout alone: a kernel may check only one of them
_TRANSPOSED, _EVERY_OTHER, _OUTER = "transposed", "of every other element", "of outer axes exchanged"
_ROTATED, _ROTATED_BACK, _CHANNELS_LAST = "of axes rotated", "of axes rotated back", "of channels last"
_APART, _VECTORS_APART, _BLOCKS_APART = "rows apart", "rows whole vectors apart", "blocks apart"
_ODD = "from an odd offset"
_MORE_ELEMENTS = {_APART: 3, _VECTORS_APART: 16, _ODD: 1}  # in a row of memory than in a row of the tensor
_CHANNELS = {4: torch.channels_last, 5: torch.channels_last_3d}
_LEAST_AXES = {_TRANSPOSED: 2, **dict.fromkeys((_OUTER, _ROTATED, _ROTATED_BACK, _BLOCKS_APART), _LEAST_OUTER_AXES)}
_LAYOUTS = (
    _APART,
    _VECTORS_APART,
    _BLOCKS_APART,
    _TRANSPOSED,
    _ODD,
    _EVERY_OTHER,
    _OUTER,
    _ROTATED,
    _ROTATED_BACK,
    _CHANNELS_LAST,
)
_ALL_INPUTS = "inputs"
_POSITIONS = {_ALL_INPUTS: range(1 << 30), **{f"input {n + 1} alone": range(n, n + 1) for n in range(_MOST_ALONE)}}
_POSITIONS["all but the first input"] = range(1, 1 << 30)
NAMES = tuple(f"{prefix} {layout}" for layout in _LAYOUTS for prefix in _POSITIONS)


def laid_out(tensors: values.Tensors, name: str) -> values.Tensors:
    """Return the same values in the layout `name`, one of NAMES, for the inputs that it names and that can have it.
    Return the tensors unchanged for no name ("")."""
    for prefix, places in _POSITIONS.items():
        layout = name.removeprefix(f"{prefix} ")
        if layout in _LAYOUTS and (prefix == _ALL_INPUTS or len(tensors) > 1):
            return tuple(_laid_out(t, layout) if place in places else t for place, t in enumerate(tensors))
    return tuple(tensors)


def _gaps(like: torch.Tensor) -> torch.Tensor:
    """Return NaN (zeros for integers) for the gaps, so that a kernel that reads them is wrong."""
    return torch.full_like(like, math.nan if like.is_floating_point() else 0, memory_format=torch.contiguous_format)


def _laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if tensor.ndim < _LEAST_AXES.get(layout, 1) or (layout == _CHANNELS_LAST and tensor.ndim not in _CHANNELS):
        return tensor
    if layout == _TRANSPOSED:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == _OUTER:
        return tensor.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == _ROTATED:
        return tensor.movedim(-1, 0).contiguous().movedim(0, -1)
    if layout == _ROTATED_BACK:
        return tensor.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == _CHANNELS_LAST:
        return tensor.contiguous(memory_format=_CHANNELS[tensor.ndim])
    if layout == _EVERY_OTHER:
        pairs = torch.stack([tensor, _gaps(tensor)], -1)
        return pairs.reshape(*tensor.shape[:-1], -1)[..., ::2]
    if layout == _BLOCKS_APART:  # dense rows of a longer block, as of a cache that is not full
        longer = _gaps(tensor.new_empty((*tensor.shape[:-2], tensor.shape[-2] + 1, tensor.shape[-1])))
        return longer[..., : tensor.shape[-2], :].copy_(tensor)
    wide = _gaps(tensor.new_empty((*tensor.shape[:-1], tensor.shape[-1] + _MORE_ELEMENTS[layout])))
    part = wide[..., 1:] if layout == _ODD else wide[..., : tensor.shape[-1]]
    return part.copy_(tensor)
