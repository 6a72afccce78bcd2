"""Limits: how far an output may be from the oracle.

Two errors are limited, each by a small multiple of the error of a good implementation at the reference's precision: the
relative Frobenius norm, which hides one bad element, and the largest scaled element. An element is scaled by its row,
because its relative error is noise near zero.

A good implementation is the worse of the reference itself, run at its own precision, and the float64 oracle on inputs
moved by one unit in the last place, with sums moved by the rounding of additions. So a lucky summation order of the
reference does not narrow the limit below the error of another good order.

The factors for float32 accepted 22 honest kernels and refused split-bf16 products; those for half precisions leave room
for one more rounding of an intermediate. `python -m bench.limits` measures them: the worst of its honest
implementations used 73% of a limit on a CPU (rmsnorm to float8_e4m3fn in float32, backwards), and no control stayed
below one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from evaluator.types import Precision


@dataclass(frozen=True, slots=True)
class Rule:
    """Multiples of a good implementation's error, and the error that is always allowed: in norm, and per element."""

    norm_factor: float
    norm_floor: float
    element_factor: float
    element_floor: float

    def of_norm(self, elements: int) -> Rule:
        """Return the rule for the norm of so many elements. One element may be a whole rounding off, where a norm over
        many averages them."""
        share = 1 / math.sqrt(elements)
        return replace(
            self,
            norm_factor=self.norm_factor + share * max(0.0, self.element_factor - self.norm_factor),
            norm_floor=self.norm_floor + share * max(0.0, self.element_floor - self.norm_floor),
        )


_RULES = {
    torch.float64: Rule(4, 3e-15, 8, 3e-14),  # no wider type shows its own error
    torch.float32: Rule(4, 3e-7, 16, 1e-6),
    torch.float16: Rule(2, 2.5e-4, 4, 1e-3),
    torch.bfloat16: Rule(2, 2e-3, 4, 8e-3),
}
# In eight bits a value next to a tie may round to either side, one whole step away: an eighth or a quarter of it.
_EIGHT_BIT = Rule(2, 2e-2, 1, 0.14)
_TWO_BITS = Rule(2, 2e-2, 1, 0.28)
AT_LEAST = {Precision.TF32: (5e-4, 4e-3), Precision.HALF_ACCUMULATE: (2e-3, 2e-2)}


def rule_for(dtype: torch.dtype) -> Rule:
    """Return the rule for outputs of a floating dtype (complex: that of its parts)."""
    if dtype.is_complex:
        dtype = torch.float64 if dtype is torch.complex128 else torch.float32
    if dtype in (torch.float8_e5m2, torch.float8_e5m2fnuz):
        return _TWO_BITS
    return _RULES.get(dtype, _EIGHT_BIT)


@dataclass(frozen=True, slots=True)
class Limit:
    """The allowed errors of one output: relative in norm, and of the largest scaled element."""

    norm: float
    element: float

    def allows(self, norm: float, element: float) -> bool:
        return norm <= self.norm and element <= self.element

    def widest(self, other: Limit) -> Limit:
        return Limit(max(self.norm, other.norm), max(self.element, other.element))
