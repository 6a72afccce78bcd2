"""The expected results of one call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluator.comparison.claims import structure, tensor_claims
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit

INACCURATE_REFERENCE = (
    "the reference is more than 5 % away from its own float64 result, so nothing can be compared with it: use inputs"
    " that it computes accurately"
)
VARYING_SHAPES = "the shapes of outputs depend on the inputs' values"
FIXED_SHAPES = "return tensors of fixed shapes, a mask in place of nonzero() or unique(), for example"


@dataclass(frozen=True, slots=True)
class Expected:
    """The structure that one call must return, and a target and a limit per tensor. Targets of inputs that it changes
    follow.

    The limit is infinite where the reference is so far from the oracle that a comparison tells nothing of that output.
    """

    reply: Any
    targets: tuple[Target, ...]
    limits: tuple[Limit, ...]
    dtypes: tuple[str, ...]
    changed_inputs: tuple[int, ...] = ()

    @property
    def structure(self) -> str:
        return structure(self.reply)

    @property
    def shapes(self) -> list[list[int]]:
        """The shapes of outputs, and of inputs that the call changes."""
        return [list(target.reference.shape) for target in self.targets]

    @property
    def informative(self) -> bool:
        """True if a comparison tells something of any output."""
        return not self.limits or any(math.isfinite(limit.norm) for limit in self.limits)

    @property
    def complete(self) -> bool:
        """True if a comparison tells something of every output."""
        return all(math.isfinite(limit.norm) for limit in self.limits)

    def label(self, index: int) -> str:
        """Return the name of a target in messages."""
        returned = len(tensor_claims(self.reply))
        return f"output {index}" if index < returned else f"input {self.changed_inputs[index - returned]}, changed"

    def with_slack(self, slack: float) -> Expected:
        """Return the same with limits `slack` times as wide."""
        return replace(self, limits=tuple(Limit(slack * one.norm, slack * one.element) for one in self.limits))

    def with_widest_limits(self, others: Sequence[Expected]) -> Expected:
        """Return the same with the widest limits of all."""
        limits = self.limits
        for other in others:
            limits = tuple(mine.widest(theirs) for mine, theirs in zip(limits, other.limits, strict=True))
        return replace(self, limits=limits)
