"""Special values and accuracy of the generated mathematics, and numbers that only some workloads have."""

# ruff: noqa: E501  formulas

from __future__ import annotations

import math

import pytest
import torch

from evaluator.types import DeviceKind
from synthesis.strategies import propose
from tests.synthesis.checking import flat, graphs, module, problem

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
    -1e-40,
    1e38,
    -1e38,
    88.0,
    89.0,
    -87.5,
    -103.0,
    -105.0,
    0.5,
    20.0,
]
TWO = [{"name": "a", "rows": 7, "n": 37}, {"name": "b", "rows": 12, "n": 264}]


def outputs(forward: str, x: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Return (Candidate's, reference's, reference's in float64) for one input."""
    source = problem(f"return {forward}", "torch.randn(rows, n)")
    draft = propose(graphs(source, TWO), DeviceKind.CPU, number=0)
    assert draft is not None
    reference, made = module(source).Model(), module(draft.source).ModelNew()
    with torch.no_grad():
        return flat(made(x)), flat(reference(x)), flat(reference(x.double()))


def test_functions_are_accurate_to_a_few_units_in_the_last_place() -> None:
    x = torch.cat([torch.linspace(-20, 20, 40001), torch.logspace(-38, 38, 4001), -torch.logspace(-30, 1.9, 4001)])[
        None
    ]
    formula = (
        "torch.exp(a0), torch.tanh(a0), torch.erf(a0), torch.sigmoid(a0), torch.log(a0.abs()), torch.log1p(a0.abs())"
    )
    got, _, oracle = outputs(formula, x)
    for name, g, o in zip(formula.split("torch.")[1:], got, oracle, strict=True):
        normal = (o.abs() > 2.0**-126) & (o.abs() < 3e38)
        error = ((g.double() - o).abs() / o.abs())[normal].max().item() * 2**23
        assert error < 3.0, f"{name} is {error:.2f} units off"


@pytest.mark.parametrize(
    "formula",
    [
        "torch.exp(a0), torch.log(a0), torch.tanh(a0), torch.erf(a0), torch.sigmoid(a0), F.silu(a0), F.relu(a0)",
        "a0.clamp(-1, 1), torch.maximum(a0, a0 * 0), a0.abs().sqrt(), 1 / a0, torch.where(a0 > 0, a0, 1.0), -a0",
    ],
)
def test_special_values_spread_as_in_the_reference(formula: str) -> None:
    got, eager, _ = outputs(formula, torch.tensor(SPECIAL)[None])
    for g, e in zip(got, eager, strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-38, equal_nan=True), (g, e)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values_in_a_row_reach_its_reductions(special: float) -> None:
    x = torch.randn(3, 37)
    x[1, 20] = special
    x[2, :] = special
    formula = "torch.softmax(a0, -1), torch.logsumexp(a0, -1), a0.amax(-1), a0.amin(-1), a0.mean(-1), torch.log_softmax(a0, -1)"
    got, eager, _ = outputs(formula, x)
    for g, e in zip(got, eager, strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-6, equal_nan=True), (g, e)


def test_a_scale_that_depends_on_a_size() -> None:
    source = problem("return torch.softmax(a0 / math.sqrt(a0.shape[-1]), -1)", "torch.randn(rows, n)")
    draft = propose(graphs(source, TWO), DeviceKind.CPU, number=0)
    assert draft is not None
    x = torch.randn(5, 91)
    expected = module(source).Model()(x)
    assert torch.allclose(module(draft.source).ModelNew()(x), expected, rtol=1e-5, atol=1e-7)
