"""Recipes that draw tensors like given ones: of the same shape, layout, dtype and range of values."""

from __future__ import annotations

from typing import Any

from warpwright.library.errors import NotPortable
from warpwright.library.literals import torch

SAMPLED = 1 << 16
"""Ranges are read from so many elements."""


def recipe(tensor: Any, name: str) -> str:
    """Return an expression for a tensor that is drawn anew. Raises NotPortable."""
    library = torch()
    if tensor.layout is not library.strided or tensor.is_quantized:
        raise NotPortable(f"{name} is a {tensor.layout} tensor; only dense ones can be drawn")
    shape, order = _dense_shape(tensor, name)
    text = _values(tensor.detach(), shape, name)
    if order == sorted(order):
        return text
    back = [order.index(axis) for axis in range(len(order))]
    return f"{text}.permute({', '.join(map(str, back))})"


def _dense_shape(tensor: Any, name: str) -> tuple[list[int], list[int]]:
    """Return the shape as it lies in memory, and the order of its axes there. Raises NotPortable for gaps."""
    sizes, strides = list(tensor.shape), list(tensor.stride())
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis] if sizes[axis] > 1 else 0, axis))
    if tensor.is_contiguous():
        order = list(range(len(sizes)))
    wanted = 1
    for axis in reversed(order):
        if sizes[axis] > 1 and strides[axis] != wanted:
            raise NotPortable(f"{name} has gaps or overlaps (strides {tuple(strides)}); pass {name}.contiguous()")
        wanted *= sizes[axis]
    return [sizes[axis] for axis in order], order


def _values(tensor: Any, shape: list[int], name: str) -> str:
    """Return the draw. Its range is read from the tensor, roughly, so that indices stay valid."""
    library = torch()
    sample = tensor.flatten()[:SAMPLED]
    if tensor.dtype is library.bool:
        share = float(sample.double().mean()) if sample.numel() else 0.5
        return f"torch.rand({shape}) < {round(min(0.95, max(0.05, share)), 2)}"
    if tensor.is_complex():
        return f"torch.randn({shape}, dtype={tensor.dtype})"
    if not tensor.is_floating_point():
        whole = tensor.to(library.int64)
        least, most = (int(whole.min()), int(whole.max())) if whole.numel() else (0, 1)
        return f"torch.randint({least}, {most + 1}, {shape}).to({tensor.dtype})"
    finite = sample.double()[library.isfinite(sample.double())]
    if not finite.numel():
        return f"torch.randn({shape}).to({tensor.dtype})"
    low, high = float(finite.min()), float(finite.max())
    cast = "" if tensor.dtype is library.float32 else f".to({tensor.dtype})"
    if low >= 0 and high <= 1:
        return f"torch.rand({shape}){cast}"
    spread, middle = float(finite.std(correction=0)), float(finite.mean())
    text = f"torch.randn({shape})"
    if spread and not 0.5 <= spread <= 2:
        text = f"{text} * {spread:.2g}"
    if abs(middle) > 0.5 * max(spread, 0.1):
        text = f"{text} + {middle:.2g}"
    return f"({text}){cast}" if cast or " " in text.partition(")")[2] else text
