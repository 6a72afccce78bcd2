"""Outputs that are not what was expected, for which there may be a good reason: NaN that has no influence, and picks
that rounding decides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator.child.reference.float64 import INDICES
from evaluator.comparison.expected import Expected
from evaluator.errors import ChildError
from evaluator.inputs import perturbations, values
from evaluator.oracle.oracle import Oracle

_Group = dict[int, float | None]
_CALL_S = 30.0
_SHARES = (-1.0, 0.4, 2.0)  # of what lies between usual values: below, among and above them
_SHRUNK = 1e6  # times smaller an output may be than what stands for infinity
# Ways to pick among values that tie (`child.picks`): by which each element may be told, and by which each row. A kernel
# may keep the first or the last that it sees, begin anywhere, or exchange neighbours.
_BY_ELEMENT, _BY_ROW = ("own", "runner-up"), (0, -1, 2, 4, -3, "even", "odd")
_ROUNDED = 1e-13  # of the largest in a row
_GROUPS = 15  # of inputs whose NaN and infinities are replaced: all that four of them make


def allow_alternatives(
    oracle: Oracle,
    tree: Any,
    tensors: Sequence[torch.Tensor],
    expected: Expected,
    outputs: Sequence[torch.Tensor],
    *,
    any_tie: bool = False,
) -> Expected:
    """What is expected of outputs that are not what was expected, for which there may be a good reason. With `any_tie`
    any of many that tie is as good as another: inputs are so small that functions of them all round to the same."""
    expected = allow_ignored_nan(oracle, tree, tensors, expected, outputs) or expected
    return allow_other_ties(oracle, tree, tensors, expected, outputs, any_tie=any_tie) or expected


def allow_ignored_nan(
    oracle: Oracle, tree: Any, tensors: Sequence[torch.Tensor], expected: Expected, outputs: Sequence[torch.Tensor]
) -> Expected | None:
    """What is expected of outputs that are finite where the reference's are NaN because of NaN or infinities among
    the inputs that have no influence there: the outputs are the same whichever finite values stand in for those of
    an input, or of several, or for one of its infinities. A product with zero is NaN for them, and who leaves that
    product out is right: a causal attention that does not read what its mask forbids. Infinities are right where
    outputs become as large as inputs do in place of infinite ones. None where there is nothing of that kind.
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
    # What is left beside NaN may be easier to compute than what takes their place.
    (usual,) = oracle.expect(tree, [perturbations.replace_non_finite(tensors, dict.fromkeys(odd), _SHARES[1])])
    limits = (
        own if target is before or math.isinf(there.norm) else own.widest(there)
        for target, before, own, there in zip(targets, expected.targets, expected.limits, usual.limits, strict=True)
    )
    return replace(expected, targets=targets, limits=tuple(limits))


def _groups(tensors: Sequence[torch.Tensor], odd: Sequence[int]) -> list[_Group]:
    """Of the inputs at which positions NaN and infinities (None) are replaced together, or those of one sign: of any
    few; and where an input has both infinities, of which one may count and the other not, each of them, too."""
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
    """What is expected of outputs that follow from other picks than the reference's among scores that rounding does
    not tell apart (`child.picks`): their own integers where these are such picks, else the runners-up, or for a row
    that others in turn give, these. Integers that are made of picks (a token and its beam) may be any where picks are
    undecided. None where the reference picks nothing."""
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
    except ChildError:  # it picks nothing, or not the same in every precision
        return None
    count, free = len(_BY_ELEMENT), {at for at, of_picks in zip(places, made, strict=False) if of_picks}
    told = [
        target.nearest_of(
            actual, others[:count], others[count:], any_number=at in free or (any_tie and not target.integral)
        )
        for at, (target, actual, *others) in enumerate(zip(expected.targets, outputs, *found, strict=True))
    ]
    return replace(expected, targets=tuple(told))


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two results in float64 are the same but for what it rounds, which whatever lies in a row may move where all
    of it goes through one sum and out of it again, as in a Fourier transform."""
    if not one.numel():
        return one == other
    both = torch.stack((one, other)).abs().nan_to_num(0.0, 0.0, 0.0)
    size = both.amax(dim=(0, -1), keepdim=True)[0] if one.ndim else both.amax()
    return (one == other) | ((one - other).abs() <= _ROUNDED * size)


def _wider(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_complex() else tensor.double()
