"""The sets of sizes that a Candidate is checked on: shown Workloads, sizes near them, held-out Workloads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from evaluator import layouts
from evaluator.errors import SizesSpoil
from evaluator.types import Domain, Problem, Workload

Done = TypeVar("Done")
_EXCHANGED = 2  # pairs of sizes
_BESIDE = 3  # sizes of one module, each a step from a Workload's, are called one after the other


@dataclass(frozen=True, slots=True)
class Sizes:
    """One set of sizes to be checked. `hidden` ones tell a Candidate nothing but the class of its failure."""

    label: str
    sizes: Mapping[str, Any]
    hidden: bool = False
    adversarial: bool = True
    layout: str = ""  # one of layouts.LAYOUTS; dense where there is none

    @property
    def shown_label(self) -> str:
        """What evidence may say of it."""
        return "held-out workloads" if self.hidden else self.label


class LeftOut:
    """Sizes beside the Workloads' that references do not survive: they lose their device there."""

    def __init__(self) -> None:
        self._labels: dict[str, set[str]] = {}

    def of(self, problem: Problem) -> Collection[str]:
        """The labels of a Problem's."""
        return self._labels.get(problem.hash, ())

    def surviving(self, problem: Problem, work: Callable[[], Done]) -> Done:
        """Do it, and again without the sizes that the reference did not survive. Raises what `work` raises."""
        while True:
            try:
                return work()
            except SizesSpoil as found:
                if found.label in self.of(problem):
                    raise
                self._labels.setdefault(problem.hash, set()).add(found.label)


def sizes_to_check(problem: Problem, workloads: Sequence[Workload]) -> Iterator[Sizes]:
    """Shown Workloads, then varied sizes, then held-out Workloads: cheap and telling failures first."""
    for workload in workloads:
        if not workload.held_out:
            yield Sizes(workload.name, workload.sizes)
    yield from varied_sizes(problem, workloads)
    if problem.domain is Domain.GENERAL:
        first = next(w for w in workloads if not w.held_out)
        for layout in layouts.LAYOUTS:
            yield Sizes(f"{first.name}, inputs {layout}", first.sizes, adversarial=False, layout=layout)
    for workload in workloads:
        if workload.held_out:
            yield Sizes(workload.name, workload.sizes, hidden=True)


def varied_sizes(problem: Problem, workloads: Sequence[Workload]) -> Iterator[Sizes]:
    """Whole-number sizes that differ between Workloads, one at a time set to 1, n-1 and n+1 (one of them odd), and all
    of them to n-1, as the product of an even size and an odd one is even; those of the largest Workloads, too.

    In a `general` domain also those that are equal in all Workloads, twice the size, and twice the largest. Sizes that
    the reference refuses are skipped by whoever runs this.
    """
    shown = [w for w in workloads if not w.held_out]
    if not shown:
        return
    base = min(shown, key=_size)
    fewer: dict[str, int] = {}
    for key, value in base.sizes.items():
        if type(value) is not int or value < 1:
            continue
        differs = len({w.sizes.get(key) for w in workloads}) > 1
        if not differs and problem.domain is not Domain.GENERAL:
            continue
        wanted = [1, value - 1, value + 1]
        if problem.domain is Domain.GENERAL:
            largest = max(v for w in shown if type(v := w.sizes.get(key)) is int)
            wanted += [2 * value, 2 * largest]
        for other in dict.fromkeys(n for n in wanted if n >= 1 and n != value):
            yield Sizes(f"{key}={other}", {**base.sizes, key: other}, adversarial=False)
        fewer |= {key: value - 1} if value > 1 else {}
    every = [{**base.sizes, **fewer}] if len(fewer) > 1 else []
    every += [_one_less(one, fewer) for one in _largest_of_each_kind(shown) if one is not base]
    for sizes in every:
        yield Sizes(", ".join(f"{key}={value}" for key, value in sizes.items()), sizes, adversarial=False)


def _one_less(workload: Workload, keys: Collection[str]) -> dict[str, Any]:
    return {k: v - 1 if k in keys and type(v) is int and v > 1 else v for k, v in workload.sizes.items()}


def _largest_of_each_kind(shown: Sequence[Workload]) -> list[Workload]:
    """The largest Workload of each combination of what is no number (dtypes, modes): a kernel may have ways of its own
    for those, and for large sizes."""
    found: dict[str, Workload] = {}
    for workload in sorted(shown, key=_size):
        found[repr([(k, v) for k, v in sorted(workload.sizes.items()) if type(v) is not int])] = workload
    return list(found.values())


def _size(workload: Workload) -> int:
    return sum(v for v in workload.sizes.values() if type(v) is int)


def in_turn(
    problem: Problem,
    workloads: Sequence[Workload],
    sizes: Sizes,
    left_out: Collection[str],
    alike: Callable[[Sizes], bool],
) -> list[Sizes]:
    """Sizes for one module to be called with one after the other, of those that are `alike` to its constructor: what
    is held out, the largest that is shown, and the first again; or the smallest, the largest, a Workload's, those that
    differ from them in one size alone and those with two sizes exchanged, and the smallest again."""
    shown = [Sizes(w.name, w.sizes) for w in workloads if not w.held_out]
    varied = [one for one in varied_sizes(problem, workloads) if one.label not in left_out]
    every = sorted([*shown, *varied], key=_extent)
    largest = next(filter(alike, reversed(every)), None)
    smallest = sizes if sizes.hidden else next(filter(alike, every), None)
    if largest is None or smallest is None or smallest is largest:
        return []
    if sizes.hidden:
        return [smallest, largest, smallest]
    base = min(shown, key=_extent)
    beside = [one for one in varied if _extent(one) == _extent(base) + 1][:_BESIDE]
    keys = [key for key, value in base.sizes.items() if type(value) is int and _varies(base, varied, key)]
    return [smallest, largest, *filter(alike, [base, *beside, *_exchanged(base, keys)]), smallest]


def _varies(base: Sizes, varied: Sequence[Sizes], key: str) -> bool:
    return len({one.sizes.get(key) for one in (base, *varied)}) > 1


def _exchanged(base: Sizes, keys: Sequence[str]) -> list[Sizes]:
    """As many elements in other shapes: what is kept by their number is wrong."""
    pairs = [(a, b) for a, b in itertools.combinations(keys, 2) if base.sizes.get(a) != base.sizes.get(b)]
    made = [{**base.sizes, a: base.sizes[b], b: base.sizes[a]} for a, b in pairs[:_EXCHANGED]]
    return [Sizes(", ".join(f"{key}={sizes[key]}" for key in keys), sizes, adversarial=False) for sizes in made]


def _extent(sizes: Sizes) -> int:
    return sum(value for value in sizes.sizes.values() if type(value) is int)
