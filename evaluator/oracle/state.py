"""Parameters and buffers: random values of the judge's choice, and their names in the Candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import torch

from evaluator.errors import Rejection
from evaluator.inputs.perturbations import random_like
from evaluator.inputs.values import clone, copy_laid_out, on_device, workable
from evaluator.subject import NamedTensor, StateNames
from evaluator.types import Stage, Verdict

_NEARLY_ZERO = 1e-6


@dataclass(frozen=True, slots=True)
class ParameterScaling:
    """A change of parameters: elementwise factors from `least` to `most`, all magnitudes equally likely.

    A share of the factors is `negative`. With `pruned` one row of each parameter is zero.
    """

    name: str
    least: float
    most: float
    negative: float = 0.0
    pruned: bool = False


PARAMETER_SCALINGS = (
    ParameterScaling("parameters of either sign", 1 / 8, 8.0, negative=0.5),
    ParameterScaling("larger parameters", 1.0, 32.0),
    ParameterScaling("smaller parameters", 1e-3, 1.0),
    ParameterScaling("a row of parameters zero", 1.0, 1.0, pruned=True),
)


def random_parameters(values: Mapping[str, torch.Tensor], generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Return new values like the given ones: positive parameters stay positive, others move by their own spread.

    A kernel that leaves out a gain of ones or a bias of zeros is wrong on them.
    """
    return {name: random_like(value, generator) for name, value in values.items()}


def random_statistics(
    values: Mapping[str, torch.Tensor], tables: set[str], positive: Set[str], generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Return random values for buffers of all zeros or all ones, which training would have changed (a batch norm's
    running mean and variance), and other buffers as they are. Those of `positive` get values above zero only.

    A buffer that was neither is noted in `tables` and stays from then on: for one frequency, or one position, a table
    holds only ones.
    """
    tables |= {name for name, value in values.items() if not bool((value == 0).all() | (value == 1).all())}
    drawn = {name for name, value in values.items() if _is_untrained(value)} - tables
    like = {name: positive_like(value) if name in positive else value for name, value in values.items()}
    return {name: random_like(like[name], generator) if name in drawn else value for name, value in values.items()}


def positive_like(value: torch.Tensor) -> torch.Tensor:
    """Return ones in the layout of a tensor."""
    return copy_laid_out(value, torch.ones(value.shape, device=value.device))


def scaled_parameters(
    parameters: Mapping[str, torch.Tensor], how: ParameterScaling, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Return floating values as training may leave them, far from their first ones. Others stay as they are."""
    return {name: _scaled(value, how, generator) for name, value in parameters.items()}


def scaled_statistics(
    buffers: Mapping[str, torch.Tensor], made: Mapping[str, torch.Tensor], tables: Set[str]
) -> dict[str, torch.Tensor]:
    """Return buffers with some nearly zero elements in positive statistics, like the variance of a channel that is
    never active. `made` are the initial buffers; `tables` stay."""
    found = {}
    for name, value in buffers.items():
        copy = clone(value)
        if _is_untrained(made[name]) and name not in tables and value.numel() > 1 and bool((workable(value) > 0).all()):
            flat = workable(value).flatten().clone()
            flat[:: max(2, value.numel() // 4)] *= _NEARLY_ZERO
            copy = copy_laid_out(value, flat.reshape(value.shape))
        found[name] = copy
    return found


def _scaled(value: torch.Tensor, how: ParameterScaling, generator: torch.Generator) -> torch.Tensor:
    made = value
    if value.is_floating_point() and value.numel():
        own = on_device(generator, value.device)
        share, coin = torch.rand((2, *value.shape), generator=own, device=value.device)
        if value.numel() == 1:  # a single element gets the extreme factor
            share.fill_(1.0 if how.most > 1 else 0.0)
        factor = how.least * (how.most / how.least) ** share
        flipped = coin < how.negative
        if how.negative:  # at least one element changes its sign
            flipped.reshape(-1)[0] = True
        made = workable(value) * torch.where(flipped, -factor, factor)
        if how.pruned and value.ndim and len(value) > 1:
            made[int(torch.randint(len(value), (1,), generator=generator, device=generator.device))] = 0.0
    return copy_laid_out(value, made)


def _is_untrained(value: torch.Tensor) -> bool:
    if not value.is_floating_point() or value.numel() == 0:
        return False
    zeros = value.numel() > 1 and bool((value == 0).all())  # a single zero may be a count or a flag
    return zeros or bool((value == 1).all())


def match_names(reference: StateNames, candidate: StateNames) -> dict[str, str]:
    """Map every parameter and buffer of the reference to its name in the Candidate.

    Match by name where the shapes agree, else by registration order and shape, else some by name and the rest by order,
    else raise Rejection. Buffers that the Candidate lacks are left out: only parameters are compulsory.
    """
    matched = _match(reference.parameters, candidate.parameters)
    if matched is None:
        raise Rejection(
            Verdict.INVALID_SUBMISSION,
            Stage.CORRECTNESS,
            "ModelNew's parameters match those of Model neither by name nor by order and shape",
            check="parameters",
            expected=[f"{p.name} {list(p.shape)}" for p in reference.parameters][:50],
            actual=[f"{p.name} {list(p.shape)}" for p in candidate.parameters][:50],
        )
    return {**matched, **(_match(reference.buffers, candidate.buffers) or _common(reference, candidate))}


def _match(expected: Sequence[NamedTensor], actual: Sequence[NamedTensor]) -> dict[str, str] | None:
    shapes = {a.name: a.shape for a in actual}
    if len(expected) == len(actual) and all(shapes.get(e.name) == e.shape for e in expected):
        return {e.name: e.name for e in expected}
    same = {e.name for e in expected if shapes.get(e.name) == e.shape}
    for known in (set[str](), same):
        rest, others = [e for e in expected if e.name not in known], [a for a in actual if a.name not in known]
        if [e.shape for e in rest] == [a.shape for a in others]:
            return {name: name for name in known} | {e.name: a.name for e, a in zip(rest, others, strict=True)}
    return None


def _common(reference: StateNames, candidate: StateNames) -> dict[str, str]:
    shapes = {b.name: b.shape for b in candidate.buffers}
    return {b.name: b.name for b in reference.buffers if shapes.get(b.name) == b.shape}
