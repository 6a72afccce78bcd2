"""The same values in memory of another layout, as a caller's slice or transpose gives: for a `general` domain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from evaluator import values

_OUTER_AXES = 3
_FIRST, _OTHERS = "of the first transposed", "of all but the first transposed"
_EVERY_OTHER, _OUTER = "of every other element", "of outer axes exchanged"
LAYOUTS = ("rows apart", "transposed", "from an odd offset", _FIRST, _OTHERS, _EVERY_OTHER, _OUTER)


def laid_out(tensors: Sequence[torch.Tensor], layout: str) -> values.Tensors:
    """The same values in memory of another layout, as a caller's slice or transpose gives; each tensor that can be, or
    some, since a kernel may look at one of them alone. As they are for no layout ("")."""
    if not layout:
        return tuple(tensors)
    if layout in (_FIRST, _OTHERS):
        pairs = enumerate(tensors)
        return tuple(_laid_out(t, "transposed") if (index == 0) is (layout == _FIRST) else t for index, t in pairs)
    return tuple(_laid_out(tensor, layout) for tensor in tensors)


def _gaps(like: torch.Tensor) -> torch.Tensor:
    """A kernel that counts gaps in shall not find zeros there."""
    return torch.full_like(like, math.nan if like.is_floating_point() else 0, memory_format=torch.contiguous_format)


def _laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if tensor.ndim == 0 or (tensor.ndim == 1 and layout == "transposed"):
        return tensor
    if layout == "transposed":
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == _OUTER:
        return tensor if tensor.ndim < _OUTER_AXES else tensor.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == _EVERY_OTHER:
        pairs = torch.stack([tensor, _gaps(tensor)], -1)
        return pairs.reshape(*tensor.shape[:-1], -1)[..., ::2]
    more = 3 if layout == "rows apart" else 1
    wide = _gaps(tensor.new_empty((*tensor.shape[:-1], tensor.shape[-1] + more)))
    part = wide[..., 1:] if layout == "from an odd offset" else wide[..., : tensor.shape[-1]]
    return part.copy_(tensor)
