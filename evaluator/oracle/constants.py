"""Vary masks, indices and numbers that a recipe always makes alike, since a kernel may take them for granted.

The judge cannot know which integers a reference accepts, so these changes preserve most meanings. An element of a mask
is flipped where no line through it becomes all true or all false (a flag in any case). Two integers are swapped unless
they are sorted, as the bounds of segments are; where all are equal and positive, some become smaller. Of drawn integers
with repeated values in every draw, most are made equal. Python's floats with a fraction become a little smaller, all by
the same factor, by a thousandth, and one alone. The reference must accept the change: it may not fail, return other
shapes, or make NaN where there was none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle

_MANY = 16
_TRIES = 8  # for one change: most places of a usual mask fit
_VARIANTS = 2
_FACTOR, _SLIGHTLY = 0.9375, 0.999  # keep probabilities valid
_MOST_ALONE = 4
_LEAST_SKEWED, _SKEWED = 8, 7 / 8


@dataclass(frozen=True, slots=True)
class Constants:
    """Other values of constant inputs, by the input's position; empty where nothing can change.

    `few` differ from the recipe's in one place, or have two elements swapped. `many` differ in up to sixteen places.
    """

    few: dict[int, list[torch.Tensor]]
    many: dict[int, torch.Tensor]

    def __bool__(self) -> bool:
        return bool(self.many)

    def changed(self, tensors: values.Tensors) -> values.Tensors:
        """Return a call's inputs with many of the constants' elements changed."""
        return tuple(self.many.get(index, tensor) for index, tensor in enumerate(tensors))

    def slightly_changed(self, tensors: values.Tensors, generator: torch.Generator) -> values.Tensors:
        """Return a call's inputs with few of the constants' elements changed."""
        picked = {index: values.shuffled(some, generator)[0] for index, some in self.few.items()}
        return tuple(picked.get(index, tensor) for index, tensor in enumerate(tensors))


def find_constants(oracle: Oracle, tree: Any, made: Sequence[values.Tensors]) -> Constants:
    """Find variants of the masks and indices that are the same in all of `made`. Raise ChildFault where the reference's
    process ends."""
    few: dict[int, list[torch.Tensor]] = {}
    many: dict[int, torch.Tensor] = {}
    known = made[0] if values.UNUSUAL not in oracle.subject.left_out else ()
    for index, tensor in enumerate(known):
        if len(made) < 2 or any(not values.same_bits(tensor, other[index]) for other in made[1:]):
            continue
        variants = [perturbed(tensor, oracle.generator, times) for times in (_MANY, *[1] * _VARIANTS)]
        found = [variant for variant in variants if variant is not None]
        if len(found) < len(variants):
            continue
        lengths = _random_lengths(tensor, oracle.generator)
        for tried in ([lengths, *found[1:]], found) if lengths is not None else (found,):
            if _accepts(oracle, tree, made[0], index, tried):
                many[index], few[index] = tried[0], tried[1:]
                break
    return Constants(few, many)


def _random_lengths(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor | None:
    """Return integers from 1 to the value that all elements have, such as lengths that are all full; None for other
    tensors."""
    value = int(tensor.flatten()[0])
    if tensor.dtype is torch.bool or not _all_equal(tensor) or value < 2:
        return None
    high = min(value, torch.iinfo(torch.int64).max - 1) + 1  # torch draws below it
    drawn = torch.randint(1, high, tuple(tensor.shape), generator=generator, device=generator.device)
    copy = values.copy_laid_out(tensor, drawn)
    copy[_place(tensor, generator)] = value if tensor.numel() > 1 else max(1, value // 2)
    return copy


def skewed(oracle: Oracle, tree: Any, draws: Sequence[values.Tensors]) -> values.Tensors | None:
    """Return a draw in which seven of eight of its integers are equal, as where a router prefers one expert.

    It changes drawn tensors that are not sorted and have repeated values in every draw. None where there are none, or
    where the reference does not take them. Raise ChildFault where its process ends.
    """
    made, generator = list(draws[0]), oracle.generator
    for index, tensor in enumerate(draws[0]):
        if all(_has_repeats(draw[index]) for draw in draws) and not values.same_bits(tensor, draws[-1][index]):
            coins = torch.rand(tuple(tensor.shape), generator=generator, device=generator.device).to(tensor.device)
            picked = torch.where(coins < _SKEWED, tensor[_place(tensor, generator)], tensor)
            made[index] = values.copy_laid_out(tensor, picked)
    return accepted(oracle, tree, draws[0], tuple(made))


def accepted(oracle: Oracle, tree: Any, usual: values.Tensors, made: values.Tensors) -> values.Tensors | None:
    """Return the changed tensors of a call where the reference accepts them; None where it does not, or nothing
    changed. Raise ChildFault where its process ends."""
    if all(one is other for one, other in zip(made, usual, strict=True)):
        return None
    found = oracle.try_calls(tree, [usual, made])
    return made if found is not None and _same_kind(found[0][1], found[1][1]) else None


def _has_repeats(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds unsorted integers, some of them repeated."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool:
        return False
    return tensor.numel() >= _LEAST_SKEWED and _swappable(tensor) and len(torch.unique(tensor)) < tensor.numel()


def perturbed(tensor: torch.Tensor, generator: torch.Generator, times: int) -> torch.Tensor | None:
    """Return a copy of a mask with up to `times` elements flipped, or of integers with as many pairs swapped; None for
    other tensors and where nothing can change."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0:
        return None
    if tensor.numel() == 1 and tensor.dtype is torch.bool:  # a flag has one other value
        return ~tensor
    if tensor.dtype is not torch.bool and not _swappable(tensor):
        return None
    copy = values.clone(values.workable(tensor))
    change = _flip if tensor.dtype is torch.bool else _lower if _all_equal(tensor) else _swap
    for _ in range(times):
        any(change(copy, generator) for _ in range(_TRIES))
    made = values.copy_laid_out(tensor, copy)
    return None if torch.equal(made, tensor) else made


def with_two_swapped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return integers with two of them swapped. Masks stay as they are: a flipped element may break a property that all
    of the recipe's masks share."""
    changed = None if tensor.dtype is torch.bool else perturbed(tensor, generator, 1)
    return tensor if changed is None else changed


def _flip(mask: torch.Tensor, generator: torch.Generator) -> bool:
    """Flip a random element, unless a line through it would become all alike. Return whether it did."""
    where = _place(mask, generator)
    mask[where] = ~mask[where]
    lines = [_line(mask, where, dim) for dim in range(mask.ndim) if mask.shape[dim] > 1]
    if all(bool(line.any()) and not bool(line.all()) for line in lines):
        return True
    mask[where] = ~mask[where]
    return False


def _line(mask: torch.Tensor, where: Sequence[int], along: int) -> torch.Tensor:
    for dim in reversed(range(mask.ndim)):
        mask = mask if dim == along else mask.select(dim, where[dim])
    return mask


def _swap(tensor: torch.Tensor, generator: torch.Generator) -> bool:
    """Swap two random elements. Return whether they differed."""
    one, other = _place(tensor, generator), _place(tensor, generator)
    first, second = tensor[one].clone(), tensor[other].clone()
    tensor[one], tensor[other] = second, first
    return bool(first != second)


def _lower(tensor: torch.Tensor, generator: torch.Generator) -> bool:
    """Subtract one from a random element if it is positive. Always return True."""
    where = _place(tensor, generator)
    if tensor[where] > 0:
        tensor[where] -= 1
    return True


def _all_equal(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _swappable(tensor: torch.Tensor) -> bool:
    """Return whether integers may be swapped: sorted ones may bound segments or be grouped. But 0, 1, 2, ... are
    positions, and equal ones may be lengths that are all full, or labels."""
    flat = tensor.flatten()
    if _all_equal(tensor):
        return True
    steps = flat[1:].to(torch.int64) - flat[:-1].to(torch.int64)
    in_order = bool((steps >= 0).all()) or bool((steps <= 0).all())
    return not in_order or (int(flat[0]) == 0 and bool((steps == 1).all()))


def _place(tensor: torch.Tensor, generator: torch.Generator) -> tuple[int, ...]:
    return tuple(int(torch.randint(size, (1,), generator=generator, device=generator.device)) for size in tensor.shape)


def with_smaller_floats(oracle: Oracle, tree: Any, tensors: values.Tensors) -> list[Any]:
    """Return trees of a call with other floats, as far as the reference takes them: all of them smaller, all of them
    slightly, and where there are several, each of the first few alone, since one need not follow from another. Raise
    ChildFault where its process ends."""
    count = len(list(_floats(tree)))
    if not count or values.UNUSUAL in oracle.subject.left_out:
        return []
    alone = range(min(count, _MOST_ALONE)) if count > 1 else ()
    others = [_with_floats(tree, (factor,) * count) for factor in (_FACTOR, _SLIGHTLY)]
    others += [_with_floats(tree, tuple(_FACTOR if n == place else 1.0 for n in range(count))) for place in alone]
    usual = oracle.try_calls(tree, [tensors])
    if not usual:
        return []
    tried = [(other, oracle.try_calls(other, [tensors])) for other in others if other != tree]
    return [other for other, found in tried if found and _same_kind(usual[0][1], found[0][1])]


def _floats(tree: Any) -> Iterator[float]:
    """Yield the floats of a tree in the order of `_with_floats`."""
    if isinstance(tree, dict) and isinstance(tree.get("float"), str):
        yield float.fromhex(tree["float"])
    elif isinstance(tree, dict | list):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from _floats(item)


def _with_floats(tree: Any, factors: Sequence[float]) -> Any:
    """Return a tree with each of its floats times its own factor."""
    left = iter(factors)

    def changed(item: Any) -> Any:
        if isinstance(item, list):
            return [changed(part) for part in item]
        if not isinstance(item, dict):
            return item
        if isinstance(item.get("float"), str):
            return {"float": (float.fromhex(item["float"]) * next(left)).hex()}
        return {key: changed(part) for key, part in item.items()}

    return changed(tree)


def _accepts(oracle: Oracle, tree: Any, tensors: values.Tensors, index: int, variants: Sequence[torch.Tensor]) -> bool:
    calls = [tensors, *((*tensors[:index], variant, *tensors[index + 1 :]) for variant in variants)]
    found = oracle.try_calls(tree, calls)
    return found is not None and all(_same_kind(found[0][1], outputs) for _, outputs in found[1:])


def _same_kind(usual: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """Return whether outputs have the usual shapes, and no NaN that the usual outputs lack."""
    return all(
        a.shape == b.shape and not bool((b.isnan() & ~a.isnan()).any()) for a, b in zip(usual, outputs, strict=True)
    )
