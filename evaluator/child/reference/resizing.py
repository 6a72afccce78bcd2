"""Give the recipes' tensors other dimensions, where nothing names the sizes: equal dimensions change together.

Such a size is named by its usual value: "dimension 256" of the inputs, or "dimension and argument 256", which also
changes whole numbers of that value among the arguments of the constructor and of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

DIMENSION, WITH_ARGUMENTS = "dimension ", "dimension and argument "
_STEP, _FIRST = 7, 3  # further rows repeat earlier ones in an order of their own
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def named_sizes(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a recipe may take by name."""
    return {name: value for name, value in sizes.items() if not name.startswith(DIMENSION)}


def changes(sizes: Mapping[str, Any], *, arguments: bool = False) -> dict[int, int]:
    """Return the changed dimensions of tensors, or the changed `arguments`: the usual values with the new ones."""
    prefixes = (WITH_ARGUMENTS,) if arguments else (WITH_ARGUMENTS, DIMENSION)
    found = {}
    for name, value in sizes.items():
        usual = next((name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)), "")
        if usual.isdigit() and int(usual) != value:
            found[int(usual)] = int(value)
    return found


def resized(tensor: torch.Tensor, changed: Mapping[int, int]) -> torch.Tensor:
    """Return a tensor with other dimensions and values of the given one, its axes in the same order in memory.

    Further rows repeat others: those of integers and booleans the last one, which keeps them sorted.
    """
    shape = [changed.get(length, length) for length in tensor.shape]
    if shape == list(tensor.shape) or not tensor.numel():
        return tensor
    part = tensor
    for axis, length in enumerate(tensor.shape):
        if tensor.stride(axis) == 0 and length > 1:  # expanded
            part = part.narrow(axis, 0, 1)
        elif shape[axis] != length:
            part = _selected(part, axis, _picked(tensor, length, shape[axis]))
    order = [axis for _, axis in sorted((-stride, axis) for axis, stride in enumerate(tensor.stride()))]
    dense = torch.empty_permuted(part.shape, order, dtype=tensor.dtype, device=tensor.device)
    _as_bits(dense).copy_(_as_bits(part))
    return dense.expand(shape)


def _picked(tensor: torch.Tensor, length: int, wanted: int) -> torch.Tensor:
    every = torch.arange(wanted, device=tensor.device)
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.where(every < length, every, (_STEP * every + _FIRST) % length)
    return every.clamp(max=length - 1)


def _selected(tensor: torch.Tensor, axis: int, index: torch.Tensor) -> torch.Tensor:
    return _as_bits(tensor).index_select(axis, index).view(tensor.dtype)


def _as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view in a dtype that torch can select from and copy."""
    if tensor.is_complex() or tensor.dtype is torch.bool:
        return tensor
    return tensor.view(_BITS[tensor.element_size()])


def with_arguments(tree: Any, changed: Mapping[int, int]) -> Any:
    """Return arguments, as `protocol.layout.write_tree` writes them, with other whole numbers."""
    if type(tree) is int:
        return changed.get(tree, tree)
    if isinstance(tree, list):
        return [with_arguments(item, changed) for item in tree]
    if isinstance(tree, dict) and "tensor" not in tree:
        return {key: with_arguments(item, changed) for key, item in tree.items()}
    return tree
