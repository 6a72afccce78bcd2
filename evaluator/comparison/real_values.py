"""Tensors as real float64 numbers, and their NaN and infinities."""

from __future__ import annotations

import math

import torch


def same_non_finite(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Mark where both tensors are NaN, or both the same infinity."""
    return (torch.isnan(a) & torch.isnan(b)) | (torch.isinf(b) & (a == b))


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64, complex numbers as pairs along a last axis."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float64)


def with_dtype_of(like: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Return a tensor of `as_real` in the dtype of `like` again."""
    return (torch.view_as_complex(real) if like.is_complex() else real).to(like.dtype)


def all_finite(tensor: torch.Tensor) -> bool:
    """Return whether all elements are finite. A finite norm tells in a tenth of the time; an infinite one may have
    overflowed."""
    narrow = tensor.dtype not in (torch.float32, torch.float64)
    norm = torch.linalg.vector_norm(as_real(tensor) if narrow else tensor)
    return math.isfinite(float(norm)) or bool(torch.isfinite(as_real(tensor) if narrow else tensor).all())
