"""Errors within a limit are enough where every right value is finite."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit

SHAPES = [(3,), (5, 9), (2, 3, 16), (1, 1)]


@given(
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
    seed=st.integers(0, 2**31),
    off=st.sampled_from([0.0, 1e-7, 1e-3, 0.5]),
    limits=st.tuples(st.sampled_from([1e-7, 1e-3, float("inf")]), st.sampled_from([1e-6, 1e-2, float("inf")])),
    hole=st.sampled_from([None, float("nan"), float("inf")]),
)
def test_what_the_errors_allow_is_no_finding(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    seed: int,
    off: float,
    limits: tuple[float, float],
    hole: float | None,
) -> None:
    generator, limit = torch.Generator().manual_seed(seed), Limit(*limits)
    oracle = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = Target(oracle, oracle.to(dtype))
    actual = (oracle * (1 + off * torch.randn(shape, generator=generator, dtype=torch.float64))).to(dtype)
    if hole is not None:
        actual.view(-1)[0] = hole
    assert target.finite
    assert limit.allows(*target.errors(actual)) is (target.compare(actual, limit) is None)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_hole_in_finite_values_exceeds_every_finite_limit(value: float) -> None:
    target = Target(torch.ones(4, 8, dtype=torch.float64), torch.ones(4, 8))
    actual = torch.ones(4, 8)
    actual[1, 2] = value
    assert not Limit(1e30, 1e30).allows(*target.errors(actual))
