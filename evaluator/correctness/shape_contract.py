"""Sizes that somebody may have meant. A reference that broadcasts takes others, too: a rotation of three numbers in
pairs, or fewer heads than there are for keys. What it then returns has shapes that nobody would expect or make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Shapes = Sequence[Sequence[int]]


class ShapeContract:
    """Which axes of the outputs are as long as which sizes say, as far as the Workloads tell."""

    def __init__(self) -> None:
        self._sizes_by_axis: list[list[frozenset[str]]] | None = None

    def learn(self, sizes: Mapping[str, Any], shapes: Shapes) -> None:
        """The outputs of a Workload that is shown have these shapes."""
        found = [
            [frozenset(key for key, value in sizes.items() if _equals(value, n)) for n in shape] for shape in shapes
        ]
        if self._sizes_by_axis is None:
            self._sizes_by_axis = found
            return
        for known, new in zip(self._sizes_by_axis, found, strict=False):
            known[:] = [a & b for a, b in zip(known, new, strict=False)]

    def allows(self, sizes: Mapping[str, Any], shapes: Shapes) -> bool:
        """Whether every axis that is as long as some sizes say is so here, too, by one of them."""
        pairs = zip(self._sizes_by_axis or [], shapes, strict=False)
        axes = (axis for known, shape in pairs for axis in zip(known, shape, strict=False))
        return all(not keys or any(_equals(sizes.get(key), n) for key in keys) for keys, n in axes)


def _equals(value: Any, length: int) -> bool:
    return type(value) is int and value == length
