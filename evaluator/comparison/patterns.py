"""The places of wrong elements, in words for kernel authors: "columns >= 1984 (the last, partial block of 64)", "every
17th element", "the last row". Only the places are read, not the values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

_FILLED = 0.9  # of the described places are wrong, at least: a few are right by chance
_BLOCKS = tuple(1 << power for power in range(10, 3, -1))  # sizes of a block that has a partial last one
_LEAST_REPEATS = 3
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


@dataclass(frozen=True, slots=True)
class Words:
    """The names of one index and of several: "row", "rows"."""

    one: str
    many: str
    axis: str = ""  # the axis, where it is not obvious


_ELEMENT = Words("element", "elements")


def describe(wrong: torch.Tensor) -> str | None:
    """Describe the places where `wrong` (bool, any shape) is true; None where there are none. "scattered" where no rule
    fits."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == 0:
        return None
    if total == 1 or count >= _FILLED * total:
        return "all elements" if count == total else f"nearly all elements ({count} of {total})"
    if wrong.ndim == 0:
        return "all elements"
    exact = _by_axes(wrong, count, 1.0) or _diagonal(wrong, count) or _flat(wrong)
    return exact or _by_axes(wrong, count, _FILLED) or f"scattered: {count} of {total} elements"


def _by_axes(wrong: torch.Tensor, count: int, filled: float) -> str | None:
    """Describe a block of the index space: some indices along each axis, and every combination of them."""
    hits = [_any_along(wrong, axis) for axis in range(wrong.ndim)]
    covered = math.prod(int(hit.sum()) for hit in hits)
    if count < filled * covered:
        return None
    parts = [_along(hit, words) for hit, words in zip(hits, _names(wrong.ndim), strict=True) if not bool(hit.all())]
    if not parts or any(part is None for part in parts):
        return None
    return ", ".join(part for part in parts if part is not None)


def _any_along(wrong: torch.Tensor, axis: int) -> torch.Tensor:
    return wrong.movedim(axis, 0).reshape(wrong.shape[axis], -1).any(dim=1)


def _names(axes: int) -> list[Words]:
    if axes == 1:
        return [_ELEMENT]
    last = [Words("row", "rows"), Words("column", "columns")]
    return [*(Words("index", "indices", f" of axis {axis}") for axis in range(axes - 2)), *last]


def _along(hit: torch.Tensor, words: Words) -> str | None:
    """Describe the indices of one axis that are hit: some of them, not all."""
    starts, ends = _runs(hit)
    if len(starts) == 1:
        return _range(int(starts[0]), int(ends[0]), hit.numel(), words)
    regular = _regular(hit, starts, ends, words)
    if regular is not None:
        return regular
    starts, ends = _runs(~hit)
    if len(starts) == 1:
        plain = replace(words, axis="")
        but = _range(int(starts[0]), int(ends[0]), hit.numel(), plain).removeprefix(f"{words.many} ")
        return f"all {words.many}{words.axis} but {but}"
    return None


def _runs(hit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the starts and the ends of ranges of neighbours."""
    edge = torch.zeros(1, dtype=torch.int8, device=hit.device)
    change = torch.diff(torch.cat([edge, hit.to(torch.int8), edge]))
    return (change == 1).nonzero().flatten(), (change == -1).nonzero().flatten()


def _range(low: int, high: int, size: int, words: Words) -> str:
    if high - low == 1:
        return f"the last {words.one}{words.axis}" if high == size else f"{words.one} {low}{words.axis} alone"
    if high == size:
        block = next((b for b in _BLOCKS if size % b and low == size - size % b and low), None)
        tail = "" if block is None else f" (the last, partial block of {block})"
        return f"{words.many} >= {low}{words.axis}{tail}"
    return f"{words.many} < {high}{words.axis}" if low == 0 else f"{words.many} {low} to {high - 1}{words.axis}"


def _regular(hit: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, words: Words) -> str | None:
    """Describe equal runs at equal distances over the whole axis; those at its ends may be cut short."""
    if len(starts) < _LEAST_REPEATS:
        return None
    period, length = int(starts[2] - starts[1]), int(ends[1] - starts[1])
    start = int(starts[1]) % period
    place = (torch.arange(hit.numel(), device=hit.device) - start) % period
    if not torch.equal(place < length, hit):
        return None
    if length > 1:
        return f"{words.many} {start} to {start + length - 1} of every {period}{words.axis}"
    every = "every other" if period == 2 else f"every {_ordinal(period)}"
    return f"{every} {words.one}{words.axis}, from {start} on"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"


def _diagonal(wrong: torch.Tensor, count: int) -> str | None:
    """Describe a triangle of the last two axes, as of a causal mask."""
    if wrong.ndim < 2 or min(wrong.shape[-2:]) < _LEAST_REPEATS:
        return None
    ones = torch.ones(wrong.shape[-2:], dtype=torch.bool, device=wrong.device)
    for text, mask in (
        ("columns right of the diagonal", ones.triu(1)),
        ("columns left of the diagonal", ones.tril(-1)),
        ("the diagonal", ones.triu().tril()),
    ):
        if not bool((wrong & ~mask).any()) and count >= _FILLED * int(mask.sum()) * (wrong.numel() // mask.numel()):
            return text
    return None


def _flat(wrong: torch.Tensor) -> str | None:
    """Describe a rule over the elements in the order of memory that the axes do not show."""
    if wrong.ndim == 1:
        return None
    flat = wrong.flatten()
    found = _along(flat, _ELEMENT)
    return None if found is None else f"{found} (counted through)"
