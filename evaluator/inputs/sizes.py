"""The sizes that a Candidate is checked on: shown Workloads, sizes near them, held-out Workloads."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from evaluator import recipe_sizes
from evaluator.errors import UnsupportedCase
from evaluator.inputs import layouts
from evaluator.types import Domain, Problem, Workload

Result = TypeVar("Result")
_MOST_SWAPPED_PAIRS, _MOST_EQUAL_PAIRS = 6, 3  # pairs of sizes
_MOST_NEIGHBOURS = 3  # sizes one step from a Workload's that one module is called with
_SMALL_PRIMES = (3, 5, 7, 11, 13)  # smaller than any vector or block
_MOST_TIMES_LARGEST = 8  # the elements of the largest Workload
_NONE: Mapping[str, int] = MappingProxyType({})
# Elements of vectors and blocks; a multiple of one need not be a multiple of the next.
_VECTOR_SIZES = (2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Sizes:
    """One set of sizes to check. `hidden` ones show a Candidate only the class of its failure."""

    label: str
    sizes: Mapping[str, Any]
    hidden: bool = False
    adversarial: bool = True
    layout: str = ""  # one of layouts.NAMES; "" is dense

    @property
    def shown_label(self) -> str:
        """The name for the evidence."""
        return "held-out workloads" if self.hidden else self.label


class LeftOut:
    """Sizes near the Workloads' and values outside draws that references do not survive: they lose their device, or
    accept only some of such values."""

    def __init__(self) -> None:
        self._labels: dict[str, set[str]] = {}

    def of(self, problem: Problem) -> Collection[str]:
        """Return the labels of a Problem; more may come later."""
        return self._labels.setdefault(problem.hash, set())

    def retry_without(self, problem: Problem, work: Callable[[], Result]) -> Result:
        """Do the work, and repeat it without everything that the reference did not survive. Errors of `work` pass
        through."""
        while True:
            try:
                return work()
            except UnsupportedCase as found:
                if found.label in self.of(problem):
                    raise
                self._labels[problem.hash].add(found.label)


def with_all_sizes(
    problem: Problem, workloads: Sequence[Workload], dimensions: Mapping[str, int] = _NONE
) -> list[Workload]:
    """Return the Workloads with all sizes: those that they name, the recipes' defaults, and `dimensions` that nothing
    names (`oracle.dimensions`)."""
    more = {**recipe_sizes.default_sizes(problem.source), **dimensions}
    missing = [{name: value for name, value in more.items() if name not in one.sizes} for one in workloads]
    return [replace(one, sizes={**one.sizes, **others}) for one, others in zip(workloads, missing, strict=True)]


def sizes_to_check(
    problem: Problem, workloads: Sequence[Workload], dimensions: Mapping[str, int] = _NONE
) -> Iterator[Sizes]:
    """Yield shown Workloads, then varied sizes, then held-out Workloads: cheap and informative failures come first."""
    workloads = with_all_sizes(problem, workloads, dimensions)
    for workload in workloads:
        if not workload.held_out:
            yield Sizes(workload.name, workload.sizes)
    varied = list(varied_sizes(problem, workloads))
    yield from varied
    yield from _above_the_largest(problem, workloads, {one.label for one in varied})
    if problem.domain is Domain.GENERAL:
        first = next(w for w in workloads if not w.held_out)
        for layout in layouts.NAMES:
            yield Sizes(f"{first.name}, {layout}", first.sizes, adversarial=False, layout=layout)
    for workload in workloads:
        if workload.held_out:
            yield Sizes(workload.name, workload.sizes, hidden=True)


def varied_sizes(
    problem: Problem, workloads: Sequence[Workload], dimensions: Mapping[str, int] = _NONE
) -> Iterator[Sizes]:
    """Yield sizes near the shown Workloads'.

    Each whole-number size that differs between Workloads is set to 1, n-1 and n+1 (one of them odd). Several change
    together next, because kernels branch on sizes that are small, odd, equal, or no multiple of a vector. In a
    `general` domain sizes that are equal in all Workloads change, too, and every size is also doubled and set to twice
    the largest. Callers skip the sizes that the reference refuses.
    """
    workloads = with_all_sizes(problem, workloads, dimensions)
    shown = [w for w in workloads if not w.held_out]
    if not shown:
        return
    base = smallest(shown)
    general = problem.domain is Domain.GENERAL
    varying = _varying(problem, workloads, base)
    for key, value in varying.items():
        wanted = [1, value - 1, value + 1]
        if general:
            largest = max(v for w in shown if type(v := w.sizes.get(key)) is int)
            wanted += [2 * value, 2 * largest]
        for other in dict.fromkeys(n for n in wanted if n >= 1 and n != value):
            yield Sizes(f"{key}={other}", {**base.sizes, key: other}, adversarial=False)
    seen = [dict(w.sizes) for w in shown]
    keys = list(varying)
    for sizes in (*_changed_together(base, shown, keys), *_intermediate(base, shown, keys)) if varying else ():
        if sizes not in seen:
            seen.append(sizes)
            yield Sizes(_label(sizes), sizes, adversarial=False)


def _varying(problem: Problem, workloads: Sequence[Workload], base: Workload) -> dict[str, int]:
    """Return the sizes to vary, with their values in a Workload."""
    general = problem.domain is Domain.GENERAL
    return {
        key: value
        for key, value in base.sizes.items()
        if type(value) is int and value >= 1 and (general or len({w.sizes.get(key) for w in workloads}) > 1)
    }


def _above_the_largest(problem: Problem, workloads: Sequence[Workload], known: Collection[str]) -> Iterator[Sizes]:
    """Yield the largest Workload of each kind with all sizes one more, unless it is `known` already."""
    for workload in _largest_of_each_kind([w for w in workloads if not w.held_out]):
        keys = list(_varying(problem, workloads, workload))
        sizes = _with(workload, keys, lambda value, _: value + 1)
        if keys and _label(sizes) not in known:
            yield Sizes(_label(sizes), sizes, adversarial=False)


def _changed_together(base: Workload, shown: Sequence[Workload], keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield combinations of several changed sizes that need little more memory than the Workloads:

    - every Workload with all sizes one less, since the product of an even size and an odd one is even
    - the smallest multiples of 2, 4, ... and 128 that are not multiples of the next, as far as they are near
    - two equal sizes, as of a square matrix
    - hardly any elements in total
    - one or few along one axis with the others at their largest
    """
    largest = _largest_of_each_kind(shown)
    for workload in (base, *shown):
        yield _with(workload, keys, lambda value, _: value - 1)
    for step in _VECTOR_SIZES:
        yield _with(base, keys, functools.partial(_odd_multiple, step))
    for one, other in list(itertools.combinations(keys, 2))[:_MOST_EQUAL_PAIRS]:
        smaller = min(base.sizes[one], base.sizes[other])
        yield {**base.sizes, one: smaller, other: smaller}
    for workload in largest:
        yield _with(workload, keys, lambda _, place: _SMALL_PRIMES[place % len(_SMALL_PRIMES)])
        if len(keys) > 1:
            yield from (_with(workload, [key], lambda _, __: _SMALL_PRIMES[0]) for key in keys)
            yield from (_with(workload, [key], lambda _, __: 1) for key in keys)
    wanted = {key: 8 * _SMALL_PRIMES[place % len(_SMALL_PRIMES)] for place, key in enumerate(keys)}
    if _too_much(wanted, [base, *largest]):
        wanted = {key: min(n, max(_numbers(key, [base, *largest]))) for key, n in wanted.items()}
    yield {**base.sizes, **wanted}


def _intermediate(base: Workload, shown: Sequence[Workload], keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield sizes a third and two thirds of the way between the least and the greatest on a logarithmic scale: a kernel
    with branches for small and large sizes may have one for sizes in between. First odd ones, then multiples of 16."""
    for share, even in ((1 / 3, False), (2 / 3, True)):
        wanted = {}
        for key in keys:
            least, most = min(_numbers(key, shown)), max(_numbers(key, shown))
            value = round(least ** (1 - share) * most**share)
            fitting = max(value // 16 * 16, min(value, 16)) if even else value | 1
            wanted[key] = fitting if least < most else least
        if not _too_much(wanted, shown):
            yield {**base.sizes, **wanted}


def _numbers(key: str, workloads: Sequence[Workload | Sizes]) -> list[int]:
    """Return the integer values of a size."""
    return [value for w in workloads if type(value := w.sizes.get(key)) is int]


def _too_much(wanted: Mapping[str, int], workloads: Sequence[Workload]) -> bool:
    """Return whether sizes need more than 8 times the largest Workload's elements."""
    known = [[v for key in wanted if type(v := w.sizes.get(key)) is int] for w in workloads]
    return math.prod(wanted.values()) > _MOST_TIMES_LARGEST * max(map(math.prod, known))


def _with(workload: Workload, keys: Sequence[str], change: Callable[[int, int], int]) -> dict[str, Any]:
    """Return a Workload's sizes with the integer `keys` changed by `change(value, place)`, none below 1."""
    changed = dict(workload.sizes)
    for place, key in enumerate(keys):
        if type(value := changed.get(key)) is int:
            changed[key] = max(1, change(value, place))
    return changed


def _odd_multiple(step: int, value: int, _: int) -> int:
    """Return the nearest odd multiple of a step; the value itself where that would be much larger or smaller."""
    return (value // step | 1) * step if value >= 2 * step else value


def _label(sizes: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sizes.items())


def _largest_of_each_kind(shown: Sequence[Workload]) -> list[Workload]:
    """Return the largest Workload of each combination of other values than integers (dtypes, modes). A kernel may
    branch on those, and on large sizes."""
    found: dict[str, Workload] = {}
    for workload in sorted(shown, key=_size):
        found[repr([(k, v) for k, v in sorted(workload.sizes.items()) if type(v) is not int])] = workload
    return list(found.values())


def smallest(workloads: Sequence[Workload]) -> Workload:
    """Return the Workload that is varied."""
    return min(workloads, key=_size)


def _size(workload: Workload) -> int:
    return sum(v for v in workload.sizes.values() if type(v) is int)


def sizes_for_one_module(
    problem: Problem,
    workloads: Sequence[Workload],
    sizes: Sizes,
    left_out: Collection[str],
    same_module: Callable[[Sizes], bool],
    dimensions: Mapping[str, int] = _NONE,
) -> list[Sizes]:
    """Return sizes to call one module with in turn, all of them with the `same_module` for its constructor.

    For held-out sizes: these, the largest shown ones, and these again. Otherwise: the smallest, the largest, a
    Workload's, the latter two with the dtypes and modes of other Workloads, those that differ from the Workload's in
    one size, the Workload's again, those with two sizes swapped, and the smallest again.
    """
    workloads = with_all_sizes(problem, workloads, dimensions)
    shown = [Sizes(w.name, w.sizes) for w in workloads if not w.held_out]
    varied = [one for one in varied_sizes(problem, workloads) if one.label not in left_out]
    every = sorted([*shown, *varied], key=_extent)
    largest = next(filter(same_module, reversed(every)), None)
    smallest = sizes if sizes.hidden else next(filter(same_module, every), None)
    if largest is None or smallest is None or smallest is largest:
        return []
    if sizes.hidden:
        return [smallest, largest, smallest]
    base = min(shown, key=_extent)
    neighbours = [one for one in varied if _extent(one) == _extent(base) + 1][:_MOST_NEIGHBOURS]
    keys = [key for key, value in base.sizes.items() if type(value) is int and _varies(base, varied, key)]
    near = [*neighbours, base] if neighbours else []
    between = [
        *_of_other_kinds(largest, shown),
        base,
        *_of_other_kinds(base, shown),
        *near,
        *_with_two_swapped(base, keys, {key: max(_numbers(key, every)) for key in keys}),
    ]
    return [smallest, largest, *filter(same_module, between), smallest]


def _of_other_kinds(base: Sizes, shown: Sequence[Sizes]) -> list[Sizes]:
    """Return the same sizes with the other values of each Workload: a cache keyed by sizes alone is wrong there."""
    found: dict[str, Sizes] = {}
    for one in shown:
        sizes = {**base.sizes, **{k: v for k, v in one.sizes.items() if type(v) is not int}}
        if sizes != base.sizes:
            found[_label(sizes)] = Sizes(_label(sizes), sizes, adversarial=False)
    return list(found.values())


def _varies(base: Sizes, varied: Sequence[Sizes], key: str) -> bool:
    return len({one.sizes.get(key) for one in (base, *varied)}) > 1


def _with_two_swapped(base: Sizes, keys: Sequence[str], most: Mapping[str, int]) -> list[Sizes]:
    """Return shapes with as many elements as others: a cache keyed by their number is wrong.

    No size is above its `most`: a swap that would be gives way to a pair of smaller sizes, swapped with each other.
    """
    pairs = [(a, b) for a, b in itertools.combinations(keys, 2) if base.sizes[a] != base.sizes[b]]
    made: list[dict[str, Any]] = []
    for a, b in pairs[:_MOST_SWAPPED_PAIRS]:
        x, y = base.sizes[a], base.sizes[b]
        near = min(most[a], most[b], math.isqrt(x * y))
        if y <= most[a] and x <= most[b]:
            made.append({a: y, b: x})
        elif near > 1:
            made += [{a: near, b: near - 1}, {a: near - 1, b: near}]
    found = [{**base.sizes, **swapped} for swapped in made]
    return [Sizes(_label({key: sizes[key] for key in keys}), sizes, adversarial=False) for sizes in found]


def _extent(sizes: Sizes) -> int:
    return sum(value for value in sizes.sizes.values() if type(value) is int)
