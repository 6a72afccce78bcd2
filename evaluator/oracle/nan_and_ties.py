"""Alternatives to the expected outputs: NaN without influence, and selections that rounding decides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator.child.reference.float64 import INDICES
from evaluator.comparison.expected import Expected
from evaluator.comparison.target import Target
from evaluator.errors import ChildError
from evaluator.inputs import perturbations, values
from evaluator.oracle.oracle import Oracle

_Group = dict[int, float | None]
_CALL_S = 30.0
_SHARES = (-1.0, 0.4, 2.0)  # of the range of usual values: below, within and above it
_SHRUNK = 1e6  # an output this many times smaller than the stand-in for infinity is still infinite
# Tie-breaking orders (`child.reference.ties`) that an element may follow, and those that a whole row may follow. A
# kernel may keep the first or the last of tied values, begin anywhere, or swap neighbours.
_BY_ELEMENT, _BY_ROW = ("own", "runner-up"), (0, -1, 2, 4, -3, "even", "odd")
# Further ones for what is still wrong then: a GPU's top-k takes zeros of positive sign first, wherever they lie. Of the
# choices of two among eight, so many random orders leave out one in a thousand.
_FURTHER = (
    (1, 3, 5, 6, 7, 8, 9, 10, 11),
    *(tuple(f"shuffled {n}" for n in range(i, i + 32)) for i in range(0, 192, 32)),
)
_ROUNDED = 1e-13  # of the largest value in a row
_GROUPS = 15  # at most: all combinations of four inputs


def allow_alternatives(
    oracle: Oracle,
    tree: Any,
    tensors: Sequence[torch.Tensor],
    expected: Expected,
    outputs: Sequence[torch.Tensor],
    *,
    any_tie: bool = False,
) -> Expected:
    """Return what to expect of outputs that differ from the expected ones, perhaps for a good reason.

    With `any_tie` any of many tied elements is as good as another: inputs are so small that functions of all of them
    round to the same.
    """
    expected = allow_ignored_nan(oracle, tree, tensors, expected, outputs) or expected
    return allow_other_ties(oracle, tree, tensors, expected, outputs, any_tie=any_tie) or expected


def allow_ignored_nan(
    oracle: Oracle, tree: Any, tensors: Sequence[torch.Tensor], expected: Expected, outputs: Sequence[torch.Tensor]
) -> Expected | None:
    """Return what to expect of outputs that are finite where the reference's are NaN; None where no NaN is without
    influence.

    The NaN must come from NaN or infinities of the inputs that have no influence there: the outputs are the same
    whichever finite values replace those of one input, of several, or one of its infinities. A product of them with
    zero is NaN, and a kernel that leaves out that product is right, such as a causal attention that does not read what
    its mask forbids. Infinities are right where outputs become as large as the inputs that replace infinite ones.
    """
    if all(target.integral or target.finite for target in expected.targets):
        return None
    odd = [index for index, tensor in enumerate(tensors) if not values.is_finite(tensor)]
    if not odd:
        return None
    groups = _groups(tensors, odd)
    calls = [perturbations.replace_non_finite(tensors, group, share) for group in groups for share in _SHARES]
    calls.append(perturbations.replace_infinities(tensors))
    found = oracle.try_in_float64(tree, calls)
    if found is None:
        return None
    made = iter([_wider(tensor) for tensor in some] for _, some in found)
    spared = [torch.full_like(_wider(target.oracle), torch.nan) for target in expected.targets]
    for _ in groups:
        first, *others = (next(made) for _ in _SHARES)
        for place, (one, *rest) in enumerate(zip(first, *others, strict=True)):
            same = torch.stack([_same(one, other) for other in rest]).all(0) & spared[place].isnan()
            spared[place] = torch.where(same, one, spared[place])
    for place, one in enumerate(next(made)):
        grows = spared[place].isnan() & (one.abs() > perturbations.LARGEST / _SHRUNK)
        spared[place] = torch.where(grows, one.sgn() * torch.inf, spared[place])
        spared[place] = torch.where(spared[place].isnan() & (one == 0), 0.0, spared[place])
    trios = zip(expected.targets, outputs, spared, strict=True)
    targets = tuple(target.with_finite_alternatives(actual, value) for target, actual, value in trios)
    if all(target is before for target, before in zip(targets, expected.targets, strict=True)):
        return None
    # The other elements may be easier to compute than those in place of NaN.
    (usual,) = oracle.expect(tree, [perturbations.replace_non_finite(tensors, dict.fromkeys(odd), _SHARES[1])])
    limits = (
        own if target is before or math.isinf(there.norm) else own.widest(there)
        for target, before, own, there in zip(targets, expected.targets, expected.limits, usual.limits, strict=True)
    )
    return replace(expected, targets=targets, limits=tuple(limits))


def _groups(tensors: Sequence[torch.Tensor], odd: Sequence[int]) -> list[_Group]:
    """Return groups of inputs to replace NaN and infinities in (None), or the infinities of one sign.

    `odd` are the positions of such inputs; a group is any few of them. Where an input has both infinities, one may
    count and the other not, so each of them is also replaced without the other.
    """
    every = _Group.fromkeys(odd)
    some = (few for size in range(1, len(odd) + 1) for few in itertools.combinations(odd, size))
    groups = [_Group.fromkeys(few) for few in itertools.islice(some, _GROUPS)]
    for position in odd:
        signs = [sign for sign in (math.inf, -math.inf) if bool((tensors[position] == sign).any())]
        if len(signs) > 1:
            groups += [{**others, position: sign} for sign in signs for others in (_Group(), every)]
    return groups


def allow_other_ties(
    oracle: Oracle,
    tree: Any,
    tensors: Sequence[torch.Tensor],
    expected: Expected,
    outputs: Sequence[torch.Tensor],
    *,
    any_tie: bool = False,
) -> Expected | None:
    """Return what to expect of outputs that follow other selections than the reference's among scores that rounding
    does not separate (`child.reference.ties`). None where the reference selects nothing.

    Expected are the outputs' own integers where these are such selections, else the runners-up, or, for a row that
    another tie-breaking order gives, that row. Integers computed from selections (a token and its beam) may be any
    where selections are undecided.
    """
    if (
        not oracle.in_float64
        or oracle.subject.selects is False
        or oracle.mutated(tree)
        or oracle.stateful(tree, tensors)
    ):
        return None
    places = [at for at, one in enumerate(outputs) if expected.targets[at].integral and one.dtype in INDICES]
    try:
        given = [outputs[at] for at in places]
        found, made = oracle.subject.resolve_ties(tree, tensors, given, (*_BY_ELEMENT, *_BY_ROW), timeout_s=_CALL_S)
    except ChildError:  # it selects nothing, or other elements in other precisions
        return None
    count, free = len(_BY_ELEMENT), {at for at, of_picks in zip(places, made, strict=False) if of_picks}
    told = [
        target.nearest_of(
            actual, others[:count], others[count:], any_number=at in free or (any_tie and not target.integral)
        )
        for at, (target, actual, *others) in enumerate(zip(expected.targets, outputs, *found, strict=True))
    ]
    for orders in _FURTHER:
        if _within(told, expected, outputs):
            break
        try:
            found, _ = oracle.subject.resolve_ties(tree, tensors, given, orders, timeout_s=_CALL_S)
        except ChildError:  # it has no memory for so many outputs
            break
        told = [
            target.nearest_of(actual, (), others) for target, actual, *others in zip(told, outputs, *found, strict=True)
        ]
    return replace(expected, targets=tuple(told))


def _within(targets: Sequence[Target], expected: Expected, outputs: Sequence[torch.Tensor]) -> bool:
    trios = zip(targets, expected.limits, outputs, strict=True)
    return all(target.compare(actual, limit) is None for target, limit, actual in trios)


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Mark where two float64 results agree up to rounding. Any element of a row may move it where one sum goes through
    the whole row, as in a Fourier transform."""
    if not one.numel():
        return one == other
    both = torch.stack((one, other)).abs().nan_to_num(0.0, 0.0, 0.0)
    size = both.amax(dim=(0, -1), keepdim=True)[0] if one.ndim else both.amax()
    return (one == other) | ((one - other).abs() <= _ROUNDED * size)


def _wider(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_complex() else tensor.double()
