"""Scales of errors: the norm of the right values, the size of each element's row, and the elements that are
left out."""

from __future__ import annotations

import math

import torch

_SQUARES = (1e-140, 1e140)  # norms in between are computed without relevant overflow or underflow
LEAST_ROW_LENGTH = 8  # elements that make a root mean square meaningful
LEAST_ROW_SHARE = 1e-3  # of the whole tensor's size: no row has a smaller scale
LEAST_FILL = 9e3  # masks fill with more: 1e4 in float16
_FILL_RATIO = 2.0**10  # of a fill to the root mean square of all else
_OVERFLOWING = frozenset((torch.float16, torch.bfloat16, torch.float32))  # the oracle is wider
_ROUNDINGS = 4  # units in the last place


def is_usual(values: torch.Tensor) -> bool:
    """Return whether all numbers are finite, too small for a mask's fill and held by every type of 16 bits."""
    if values.numel() == 0:
        return True
    least, most = torch.stack(torch.aminmax(values)).tolist()
    return bool(max(-least, most) <= LEAST_FILL)  # NaN are not


def norm_and_floor(
    values: torch.Tensor, fill: torch.Tensor | None = None, *, pairs: bool
) -> tuple[float, torch.Tensor]:
    """Return the norm that errors are divided by, and the least scale of each element's error.

    The scale is the root mean square of an element's row, never less than a thousandth of the whole tensor's; 1 where
    everything is zero. Rows of few elements are likely to mix different kinds of values, so there it is that of the
    column, except for `pairs` of complex numbers. Elements of a mask `fill` are left out.
    """
    if fill is not None:
        return _norm_and_floor_without(values.masked_fill(fill, 0.0), fill)
    norm = float(torch.linalg.vector_norm(values))
    if _SQUARES[0] < norm < _SQUARES[1]:
        return norm, _floor(values, norm, pairs=pairs)
    largest = float(values.abs().max()) if values.numel() else 0.0
    if largest == 0.0:
        return math.sqrt(max(1, values.numel())), torch.ones((), dtype=values.dtype, device=values.device)
    norm = float(torch.linalg.vector_norm(values / largest))
    return largest * norm, largest * _floor(values / largest, norm, pairs=pairs)


def _floor(values: torch.Tensor, norm: float, *, pairs: bool) -> torch.Tensor:
    whole = norm / math.sqrt(values.numel())
    columns = values.shape[-1] if values.ndim > 1 else 0
    if columns >= LEAST_ROW_LENGTH:
        sizes: torch.Tensor = torch.linalg.vector_norm(values, dim=-1, keepdim=True) / math.sqrt(columns)
    elif columns and values.numel() >= LEAST_ROW_LENGTH * columns and not pairs:
        flat = values.reshape(-1, columns)
        sizes = torch.linalg.vector_norm(flat, dim=0) / math.sqrt(len(flat))
    else:
        return torch.tensor(whole, dtype=values.dtype, device=values.device)
    return sizes.clamp_min_(LEAST_ROW_SHARE * whole)


def _norm_and_floor_without(values: torch.Tensor, fill: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Return the same for the rest of each row; where few elements are left, the whole tensor's size is their scale."""
    norm, floor = norm_and_floor(values, pairs=False)
    count = (~fill).sum(-1, keepdim=True)
    whole = torch.tensor(norm / math.sqrt(int(count.sum())), dtype=values.dtype, device=values.device)
    if values.ndim < 2:
        return norm, whole
    of_row = floor * (values.shape[-1] / count.clamp_min(1)).sqrt()
    return norm, torch.where(count >= LEAST_ROW_LENGTH, of_row.clamp_min(LEAST_ROW_SHARE * whole), whole)


def find_mask_fill(values: torch.Tensor) -> torch.Tensor | None:
    """Mark equal large numbers that make all others negligible, as masks fill with. None where there are none.

    They do not depend on the order of any sum, and their size tells nothing of the others.
    """
    if values.ndim == 0 or values.shape[-1] < LEAST_ROW_LENGTH or values.numel() == 0:
        return None  # statistics side by side, for example
    large = [edge for edge in {float(edge) for edge in values.aminmax()} if abs(edge) > LEAST_FILL]
    if not large:
        return None
    found = torch.zeros(values.shape, dtype=torch.bool, device=values.device)
    for edge in large:
        places = values == edge
        if int(places.sum()) > 1:
            found |= places
    rest = values[~found] / min(map(abs, large))
    if len(rest) in (0, values.numel()):
        return None
    return found if 0.0 < float(rest.square().mean().sqrt()) * _FILL_RATIO < 1.0 else None


def partly_non_finite(values: torch.Tensor) -> torch.Tensor | None:
    """Mark elements that are not finite; None where all are or none is, or where rows are too short to hold one kind of
    values."""
    if values.ndim > 1 and values.shape[-1] < LEAST_ROW_LENGTH:
        return None
    found = ~torch.isfinite(values)
    return found if 0 < int(found.sum()) < found.numel() else None


def non_finite_lines(values: torch.Tensor, share: float = 1.0) -> torch.Tensor:
    """Mark lines along any axis that are not finite in at least this share; a few elements are no line."""
    lost, axes = ~torch.isfinite(values), [axis for axis, size in enumerate(values.shape) if size >= LEAST_ROW_LENGTH]
    lines = [lost.double().mean(axis, keepdim=True).expand_as(lost) >= share for axis in axes]
    return torch.stack(lines).any(0) if lines else torch.zeros_like(lost)


def overflowing(wide: torch.Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    """Mark finite numbers that are infinite in a narrower type; None where there are none."""
    if dtype not in _OVERFLOWING or wide.is_complex():
        return None
    if wide.numel() == 0 or max(map(abs, map(float, torch.aminmax(wide)))) <= torch.finfo(dtype).max:
        return None  # the usual case, in a tenth of the time; NaN goes on
    over = wide.to(dtype).isinf() & wide.isfinite()
    return over if bool(over.any()) else None


def overflowing_alone(wide: torch.Tensor, own: torch.Tensor) -> torch.Tensor | None:
    """Mark numbers that overflow when they are rounded to the type of `own`, where `own` does not; None where none
    does."""
    over = overflowing(wide, own.dtype)
    if over is None or not bool((over & own.isfinite()).any()):
        return None
    return over & own.isfinite()


def differ_by_rounding(wide: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Mark where only rounding separates numbers from those of `own`: another order of the same sums may overflow
    there."""
    mine = own.to(wide.dtype)
    return (wide - mine).abs() <= _ROUNDINGS * torch.finfo(own.dtype).eps * mine.abs()
