"""Reductions of Triton's interpreter in halves, as a GPU does them.

The interpreter combines one pair of numbers after the other, ten milliseconds for a tile's row. What a kernel gives
`tl.reduce` must be associative: neighbours are combined, all pairs at once, until one is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime.interpreter import ReduceOps


def install() -> None:
    """Replace the reductions with a function of the kernel's own; numpy has the others."""
    ReduceOps.generic_reduce = reduce


def reduce(self: Any, given: tuple[Any, ...]) -> list[Any]:
    """Return the tensors `given`, reduced together."""
    tensors, axis = self.unravel(given, self.axis)
    kinds = [tensor.dtype for tensor in tensors]
    arrays = [np.moveaxis(tensor.handle.data, axis, 0) for tensor in tensors]
    while len(arrays[0]) > 1:
        pairs = [self.to_tensor(array[of::2], kind) for of in (0, 1) for array, kind in zip(arrays, kinds, strict=True)]
        made = self.combine_fn.fn(*pairs)
        parts = made if isinstance(made, tuple) else (made,)
        arrays = [part.handle.data.astype(array.dtype) for part, array in zip(parts, arrays, strict=True)]
    if not self.keep_dims:
        whole = [array[0] for array in arrays]
    elif self.axis is None:
        whole = [array.reshape([1] * len(given[0].handle.data.shape)) for array in arrays]
    else:
        whole = [np.moveaxis(array, 0, axis) for array in arrays]
    return [self.to_tensor(array, kind) for array, kind in zip(whole, kinds, strict=True)]
