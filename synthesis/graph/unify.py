"""Unify several traced graphs of one reference, with sizes that hold for all of them.

Dimensions that agree on every workload are the same size. Sizes of inputs and parameters become symbols, named after
the workload's own size of that value where there is one; every other size is expressed in them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.aten import Call, Graph
from synthesis.graph.nodes import HEADS, Formula
from synthesis.graph.sizes import Size
from synthesis.names import RESERVED

BLOCKS = (8, 16, 32, 64, 128, 256)


class Unifier:
    """Merges graphs. `symbols` maps each symbol to (target of the head, dimension)."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        if not graphs:
            raise Unsupported("no graph to work from")
        self.graphs = graphs
        first = graphs[0]
        shape = [(n.name, n.op, n.target) for n in first.nodes]
        for other in graphs[1:]:
            if [(n.name, n.op, n.target) for n in other.nodes] != shape or other.outputs != first.outputs:
                raise Unsupported(f"the reference takes another path on workload {other.workload}")
        self.symbols: dict[str, tuple[str, int]] = {}
        self._known: dict[tuple[int, ...], Size] = {}
        self.one = Size((1,) * len(graphs), 1)
        for kind in ("input", "parameter", "buffer"):
            for calls in self.calls():
                if calls[0].op == kind:
                    self._add_symbols(calls)
        self._base = [s for s in self._known.values() if not s.equals(1)]

    def calls(self) -> Iterator[tuple[Call, ...]]:
        """Yield the same node of every graph."""
        return zip(*(g.nodes for g in self.graphs), strict=True)

    def shape(self, calls: Sequence[Call], item: int = 0) -> tuple[Size, ...]:
        """Return the sizes of a node's result. Raise Unsupported where the rank differs between workloads."""
        shapes = []
        for call in calls:
            value = call.values[item]
            if value is None:
                raise Unsupported(f"{call.op} returns something that is not a tensor")
            shapes.append(value.shape)
        if len({len(s) for s in shapes}) != 1:
            raise Unsupported("the number of dimensions differs between workloads")
        return tuple(self.size(tuple(vector)) for vector in zip(*shapes, strict=True))

    def size(self, vector: tuple[int, ...]) -> Size:
        """Return a Size with these values. Raise Unsupported where no simple expression fits."""
        if vector not in self._known:
            self._known[vector] = self._derive(vector)
        return self._known[vector]

    def scalar(self, values: Sequence[Any]) -> Any:
        """Return one plain value for all workloads, else a Size (integers) or a Formula (floats)."""
        first = values[0]
        if all(type(v) is type(first) and v == first for v in values):
            return first
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            return self.size(tuple(values))
        if all(isinstance(v, int | float) for v in values):
            return self._formula([float(v) for v in values])
        raise Unsupported(f"an argument differs between workloads: {first!r}")

    def _formula(self, values: Sequence[float]) -> Formula:
        functions = {"rsqrt": lambda n: n**-0.5, "reciprocal": lambda n: 1 / n, "sqrt": math.sqrt, "value": float}
        for size in list(self._known.values()):
            for name, function in functions.items():
                for sign in (1, -1):
                    if all(
                        math.isclose(v, sign * function(n), rel_tol=1e-12)
                        for v, n in zip(values, size.values, strict=True)
                    ):
                        return Formula(name, size, sign)
        raise Unsupported(f"a constant that depends on the workload: {values}")

    def _add_symbols(self, calls: Sequence[Call]) -> None:
        values = [c.values[0] for c in calls]
        shapes = [v.shape for v in values if v is not None]
        if len({len(s) for s in shapes}) != 1:
            raise Unsupported("the number of dimensions differs between workloads")
        for dimension, vector in enumerate(zip(*shapes, strict=True)):
            if vector in self._known or vector == self.one.values:
                continue
            name = self._name(vector, calls[0].target, dimension)
            self.symbols[name] = (calls[0].target, dimension)
            self._known[vector] = Size(vector, name)

    def _name(self, vector: tuple[int, ...], target: str, dimension: int) -> str:
        heads = {c.target.replace(".", "_") for c in self.graphs[0].nodes}
        taken = heads | set(self.symbols) | RESERVED | {"out"}
        for key in self.graphs[0].sizes:
            if tuple(g.sizes.get(key) for g in self.graphs) == vector and key.isidentifier():
                name = key.lower()
                if name not in taken:
                    return name
        name = f"{target.replace('.', '_')}_{dimension}"
        while name in taken:
            name += "_size"
        return name

    def _derive(self, vector: tuple[int, ...]) -> Size:
        literal = Size(vector, vector[0])
        constant = len(set(vector)) == 1
        if constant and (len(vector) > 1 or vector[0] <= 8):
            return literal
        for size in itertools.chain(self._derived(), () if constant else self._further()):
            if size.values == vector:
                return size
        if constant:
            return literal
        raise Unsupported(f"a size that is not understood: {vector}")

    def _derived(self) -> Iterator[Size]:
        base = self._base
        for a in base:
            for number in (2, 3, 4):
                if all(v % number == 0 for v in a.values):
                    yield a // number
                yield a * number
        for a in base:
            for b in base:
                yield a * b
                if a.divisible(b):
                    yield a // b
                yield a + b
                if b.less(a):
                    yield a - b
        for a in base:
            yield from (a + 1, a - 1)
        for a in base:
            for b in base:
                yield from (a * b * c for c in base)

    def _further(self) -> Iterator[Size]:
        """Yield sizes that too many others equal by chance to explain one number alone."""
        for a in self._base:  # blocks of a power of two
            yield from (a // number for number in BLOCKS if all(v % number == 0 for v in a.values))
        for a in self._base:  # windows that are some elements apart
            for step in (2, 3, 4):
                yield from ((a + shift) // step + 1 for shift in range(-5, 4))
            yield from (a + shift for shift in range(-6, 7))


def is_head(call: Call) -> bool:
    return call.op in HEADS
