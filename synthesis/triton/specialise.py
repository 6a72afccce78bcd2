"""Name the sizes that Triton need not compile anew for: a variant for 1, for multiples of 16 and for others each.

What a thread loads at once depends on sizes that divide positions in memory or bound the elements along them. The
number of rows does not matter: where a row begins follows from its own number and its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence

from synthesis.expr import INNER, Expr
from synthesis.graph.sizes import Affine, Size, Tree, symbols_of
from synthesis.kernel import SHORT_ROW, Kernel, sizes_of

Monomial = tuple[tuple[Tree, ...], int]
"""Factors and a number: sizes by name, and quotients."""


def jit(sizes: Iterable[str], needed: Iterable[str]) -> str:
    """Return the decorator of a kernel that takes `sizes`; accesses to memory use those that are `needed`."""
    free = sorted(set(sizes) - set(needed))
    listed = ", ".join(f'"{name}"' for name in free)
    return f"@triton.jit(do_not_specialize=[{listed}])" if free else "@triton.jit"


def needed_by_rows(kernel: Kernel) -> set[str]:
    """Return the sizes that decide how a kernel of rows loads and stores.

    Where rows are long, a thread has no more than one element of a value for each row.
    """
    exprs, short = kernel.exprs(), min(kernel.length.values) < SHORT_ROW
    loads = [e for e in exprs if e.op == "load" and (e.full or short)]
    offsets = [e.data[1] for e in loads] + [s.offset for s in kernel.stores if s.full or short]
    bounds = [kernel.length, *([kernel.segments] if kernel.segments else []), *bounds_of(exprs)]
    found = needed(offsets, bounds, [kernel.length])
    return set(kernel.symbols()) if found is None else found


def bounds_of(exprs: Sequence[Expr]) -> list[Size]:
    """Return the sizes that say which part of a joined row an element belongs to: conditions of loads."""
    return list(sizes_of([e.data for e in exprs if e.op == "cat"]))


def needed(
    offsets: Iterable[Affine], bounds: Iterable[Size], lengths: Sequence[Size], along: Container[str] = (INNER,)
) -> set[str] | None:
    """Return the sizes that alignment and masks of some accesses depend on, None where it may be any.

    `bounds` limit elements along contiguous memory, `lengths` each of these accesses. A position is aligned no better
    than the worst of its terms, or the length. So what another term divides adds nothing. Variables `along` contiguous
    memory count from aligned numbers; another one with stride 1 comes from a quotient of sizes.
    """
    found = set[str]().union(*(size.symbols() for size in bounds))
    known = [m[0] for size in lengths if len(m := _monomials(size.tree)) == 1 and m != [((), 1)]]
    for offset in offsets:
        if any(size.equals(1) and variable not in along for variable, size in offset.terms):
            return None
        sizes = [size for _, size in offset.terms if not size.equals(1)]
        sizes += [] if offset.const.equals(0) else [offset.const]
        terms = list(dict.fromkeys(m for size in sizes for m in _monomials(size.tree)))
        worst = [t for t in terms if not any(_divides(other, t) for other in {*terms, *known} - {t})]
        found |= {name for factors, _ in worst for factor in factors for name in symbols_of(factor)}
    return found


def _monomials(tree: Tree) -> list[Monomial]:
    """Return a size as a sum of products. A quotient is a factor."""
    total: Counter[tuple[Tree, ...]] = Counter()
    if isinstance(tree, int):
        total[()] += tree
    elif isinstance(tree, str) or tree[0] == "//":
        total[(tree,)] += 1
    elif tree[0] == "*":
        for one, a in _monomials(tree[1]):
            for other, b in _monomials(tree[2]):
                total[tuple(sorted((*one, *other), key=repr))] += a * b
    else:
        for factors, number in _monomials(tree[1]):
            total[factors] += number
        for factors, number in _monomials(tree[2]):
            total[factors] += number if tree[0] == "+" else -number
    return [(factors, abs(number)) for factors, number in total.items() if number]


def _divides(one: Monomial, other: Monomial) -> bool:
    """Return true if every multiple of what divides `one` divides `other`."""
    return other[1] % one[1] == 0 and not Counter(one[0]) - Counter(other[0])
