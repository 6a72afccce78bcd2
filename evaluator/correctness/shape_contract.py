"""Infer from the Workloads how output shapes follow from sizes, to skip sizes outside of a reference's contract.

A reference that broadcasts accepts more sizes than intended: a rotation of three numbers in pairs, or fewer heads than
keys have. The shapes of its outputs are then accidental.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluator.comparison.expected import Expected
from evaluator.inputs.sizes import Sizes

Shapes = Sequence[Sequence[int]]


class ShapeContract:
    """The names of the sizes that equal each output axis on every shown Workload."""

    def __init__(self) -> None:
        self._sizes_by_axis: list[list[frozenset[str]]] | None = None

    def learn(self, sizes: Mapping[str, Any], shapes: Shapes) -> None:
        """Note the output shapes of a shown Workload."""
        found = [
            [frozenset(key for key, value in sizes.items() if _equals(value, n)) for n in shape] for shape in shapes
        ]
        if self._sizes_by_axis is None:
            self._sizes_by_axis = found
            return
        for known, new in zip(self._sizes_by_axis, found, strict=False):
            known[:] = [a & b for a, b in zip(known, new, strict=False)]

    def learn_or_check(self, sizes: Sizes, expected: Expected) -> bool:
        """Return True if the outputs have the shapes that the shown Workloads imply, which are noted first."""
        shapes = [tuple(target.oracle.shape) for target in expected.targets]
        if sizes.adversarial and not sizes.hidden:
            self.learn(sizes.sizes, shapes)
        return sizes.adversarial or self.allows(sizes.sizes, shapes)

    def allows(self, sizes: Mapping[str, Any], shapes: Shapes) -> bool:
        """Return True if every axis with known names equals one of those sizes here."""
        pairs = zip(self._sizes_by_axis or [], shapes, strict=False)
        axes = (axis for known, shape in pairs for axis in zip(known, shape, strict=False))
        return all(not keys or any(_equals(sizes.get(key), n) for key in keys) for keys, n in axes)


def _equals(value: Any, length: int) -> bool:
    return type(value) is int and value == length
