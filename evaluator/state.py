"""Parameters and buffers: random values that the judge chooses, matched between reference and Candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from evaluator.errors import Rejection
from evaluator.subject import Named, StateNames
from evaluator.types import Stage, Verdict


def random_parameters(values: Mapping[str, torch.Tensor], generator: torch.Generator) -> dict[str, torch.Tensor]:
    """New values in the manner of those given: positive parameters stay positive, others move by their own spread.

    A gain of ones or a bias of zeros becomes something that a kernel which left it out gets wrong.
    """
    return {name: _random_like(value, generator) for name, value in values.items()}


def _random_like(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not value.is_floating_point() or value.numel() == 0:
        return value.clone()
    wide = value.to(torch.float32)
    noise = torch.randn(value.shape, generator=generator, device=generator.device).to(value.device)
    if bool((wide > 0).all()):
        return (wide * torch.exp(0.3 * noise)).to(value.dtype)
    spread = float(wide.std()) if value.numel() > 1 else 0.0
    spread = spread if spread > 0 and spread == spread else 0.1 * max(1.0, float(wide.abs().max()))
    return (float(wide.mean()) + spread * noise).to(value.dtype)


def match_names(reference: StateNames, candidate: StateNames) -> dict[str, str]:
    """For every parameter and buffer of the reference its name in the Candidate.

    By name where the shapes agree, else by registration order and shape, else Rejection. Buffers that the Candidate
    does not have are left out: only parameters have to be there.
    """
    matched = _match(reference.parameters, candidate.parameters)
    if matched is None:
        raise Rejection(
            Verdict.INVALID_SUBMISSION,
            Stage.CORRECTNESS,
            "ModelNew's parameters are not those of Model, neither by name nor by order and shape",
            check="parameters",
            expected=[f"{p.name} {list(p.shape)}" for p in reference.parameters][:50],
            actual=[f"{p.name} {list(p.shape)}" for p in candidate.parameters][:50],
        )
    return {**matched, **(_match(reference.buffers, candidate.buffers) or _common(reference, candidate))}


def _match(expected: Sequence[Named], actual: Sequence[Named]) -> dict[str, str] | None:
    shapes = {a.name: a.shape for a in actual}
    if len(expected) == len(actual) and all(shapes.get(e.name) == e.shape for e in expected):
        return {e.name: e.name for e in expected}
    if [e.shape for e in expected] == [a.shape for a in actual]:
        return {e.name: a.name for e, a in zip(expected, actual, strict=True)}
    return None


def _common(reference: StateNames, candidate: StateNames) -> dict[str, str]:
    shapes = {b.name: b.shape for b in candidate.buffers}
    return {b.name: b.name for b in reference.buffers if shapes.get(b.name) == b.shape}
