"""Findings: errors of an output in words, with the evidence that helps to repair the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.comparison import patterns
from evaluator.comparison.real_values import all_finite, as_real


@dataclass(frozen=True, slots=True)
class Finding:
    """An error of an output. `check` names the test that failed; `detail` goes into the evidence."""

    check: str
    reason: str
    detail: dict[str, Any]


def finding_at(check: str, reason: str, detail: dict[str, Any], wrong: torch.Tensor, *, pairs: bool) -> Finding:
    """Return a Finding that also describes the places where `wrong` is true.

    With `pairs` the last axis of `wrong` holds the two parts of complex numbers.
    """
    pattern = patterns.describe(wrong.any(-1) if pairs else wrong)
    if pattern is not None:
        reason, detail = f"{reason}; wrong: {pattern}", {**detail, "pattern": pattern}
    return Finding(check, reason, detail)


def element_detail(worst: int, actual: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> dict[str, Any]:
    """Return index, actual and expected value of the element at a flat index, for the evidence.

    `dtype` is that of the output; both tensors hold its numbers as real ones.
    """
    shape, part = tuple(expected.shape), {}
    if dtype.is_complex:
        part, shape = {"part": ("real", "imaginary")[worst % 2]}, shape[:-1]
    return {
        "index": index_of(worst // (1 + len(part)), shape),
        **part,
        "actual": format_number(actual.flatten()[worst], dtype),
        "expected": format_number(expected.flatten()[worst], dtype),
    }


def origin_of(inputs: Sequence[torch.Tensor], *, target_finite: bool, finite: bool) -> str:
    """Name the origin of a NaN or infinity: the inputs, the right result, or the kernel.

    `finite` tells whether the right value at that place is finite, `target_finite` whether the whole right output is.
    """
    named = [(index, tensor) for index, tensor in enumerate(inputs) if tensor.is_floating_point()]
    odd = [f"input {index}" for index, tensor in named if not all_finite(tensor)]
    if odd:
        holds = "holds" if len(odd) == 1 else "hold"
        told = "spread further than in the reference" if finite else "become something else in the reference"
        return f"{' and '.join(odd)} {holds} NaN or infinities, which {told}"
    largest = max((float(as_real(tensor).abs().max()) for _, tensor in named if tensor.numel()), default=0.0)
    inputs_text = f"the inputs are finite (at most {largest:.3g} in size)"
    if target_finite:
        return f"the kernel alone: {inputs_text} and so is every element of the right result"
    return f"{inputs_text}; the reference overflows elsewhere in this output, but not here"


def format_number(value: torch.Tensor, dtype: torch.dtype) -> str:
    """Return a number in as many digits as its type has."""
    item = value.item()
    digits = 17 if dtype in (torch.float64, torch.complex128) else 9
    return f"{item:.{digits}g}" if isinstance(item, float) else str(item)


def index_of(flat: int, shape: tuple[int, ...]) -> list[int]:
    """Return the index by axis of a flat index."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return index[::-1]
