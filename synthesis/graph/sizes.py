"""Sizes that are known for every traced workload and can be computed again at run time.

A Size carries its value in each workload and an expression over named symbols. Equality goes by values: two sizes
that agree on every workload are the same size. `Affine` is an index: a sum of loop variables times Sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Tree = int | str | tuple[str, "Tree", "Tree"]

_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class Size:
    """A number of elements: `values` per workload, `tree` to compute it from symbols."""

    values: tuple[int, ...]
    tree: Tree = field(compare=False)

    @staticmethod
    def literal(value: int, like: Size) -> Size:
        return Size((value,) * len(like.values), value)

    def _with(self, sign: str, other: Size | int) -> Size:
        right = Size.literal(other, self) if isinstance(other, int) else other
        function = _FUNCTIONS[sign]
        values = tuple(function(a, b) for a, b in zip(self.values, right.values, strict=True))
        return Size(values, _fold(sign, self.tree, right.tree))

    def __add__(self, other: Size | int) -> Size:
        return self._with("+", other)

    def __sub__(self, other: Size | int) -> Size:
        return self._with("-", other)

    def __mul__(self, other: Size | int) -> Size:
        return self._with("*", other)

    def __floordiv__(self, other: Size | int) -> Size:
        return self._with("//", other)

    def divisible(self, other: Size) -> bool:
        return all(b and a % b == 0 for a, b in zip(self.values, other.values, strict=True))

    def less(self, other: Size) -> bool:
        """Return whether this size is smaller in every workload."""
        return all(a < b for a, b in zip(self.values, other.values, strict=True))

    def at_most(self, other: Size) -> bool:
        return all(a <= b for a, b in zip(self.values, other.values, strict=True))

    def equals(self, number: int) -> bool:
        return all(v == number for v in self.values)

    def text(self, division: str = "//") -> str:
        """Return the expression as text; C++ divides with "/"."""
        return _render(self.tree, division)

    def symbols(self) -> frozenset[str]:
        return frozenset(symbols_of(self.tree))


def _fold(sign: str, a: Tree, b: Tree) -> Tree:
    if isinstance(a, int) and isinstance(b, int):
        return _FUNCTIONS[sign](a, b)
    if (sign == "*" and 0 in (a, b) and isinstance(a, int | str)) or (sign == "*" and b == 0):
        return 0
    if (sign in "+-" and b == 0) or (sign in ("*", "//") and b == 1):
        return a
    if (sign == "+" and a == 0) or (sign == "*" and a == 1):
        return b
    return (sign, a, b)


def _render(tree: Tree, division: str, inner: bool = False) -> str:
    if not isinstance(tree, tuple):
        return str(tree)
    sign, a, b = tree
    text = f"{_render(a, division, True)} {division if sign == '//' else sign} {_render(b, division, True)}"
    return f"({text})" if inner else text


def symbols_of(tree: Tree) -> Iterable[str]:
    """Yield the names in an expression."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        yield from symbols_of(tree[1])
        yield from symbols_of(tree[2])


def product(sizes: Iterable[Size], one: Size) -> Size:
    total = one
    for size in sizes:
        total = total * size
    return total


@dataclass(frozen=True, slots=True)
class Affine:
    """`const` plus the sum of variable times coefficient; variables in order of first use, none with coefficient 0."""

    terms: tuple[tuple[str, Size], ...]
    const: Size

    @staticmethod
    def of(const: Size, terms: Mapping[str, Size] | None = None) -> Affine:
        kept = {v: c for v, c in sorted((terms or {}).items()) if not c.equals(0)}
        return Affine(tuple(kept.items()), const)

    def coefficient(self, variable: str) -> Size | None:
        return dict(self.terms).get(variable)

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for variable, size in other.terms:
            terms[variable] = terms[variable] + size if variable in terms else size
        return Affine.of(self.const + other.const, terms)

    def scaled(self, size: Size) -> Affine:
        return Affine.of(self.const * size, {v: c * size for v, c in self.terms})

    def shifted(self, size: Size) -> Affine:
        return Affine(self.terms, self.const + size)

    def without(self, variable: str) -> Affine:
        return Affine(tuple((v, c) for v, c in self.terms if v != variable), self.const)

    def text(self, division: str = "//") -> str:
        parts = []
        for variable, size in self.terms:
            parts.append(variable if size.equals(1) else f"{variable} * {_render(size.tree, division, True)}")
        if not self.const.equals(0) or not parts:
            parts.append(_render(self.const.tree, division, bool(parts)))
        return " + ".join(parts)
