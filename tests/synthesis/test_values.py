"""Special values and accuracy of the generated mathematics, and numbers that only some workloads have."""

from __future__ import annotations

import functools
import math

import pytest
import torch

from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.strategies import propose, sequence
from tests.synthesis.checking import flat, graphs, module, problem
from tests.synthesis.together import Together

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


FUNCTIONS = (
    "torch.exp(a0), torch.tanh(a0), torch.erf(a0), torch.sigmoid(a0), torch.log(a0.abs()), torch.log1p(a0.abs())"
)
SPREADING = [
    "torch.exp(a0), torch.log(a0), torch.tanh(a0), torch.erf(a0), torch.sigmoid(a0), F.silu(a0), F.relu(a0)",
    "a0.clamp(-1, 1), torch.maximum(a0, a0 * 0), a0.abs().sqrt(), 1 / a0, torch.where(a0 > 0, a0, 1.0), -a0",
]
REDUCTIONS = (
    "torch.softmax(a0, -1), torch.logsumexp(a0, -1), a0.amax(-1), a0.amin(-1), a0.mean(-1), torch.log_softmax(a0, -1)"
)
SCALED = "torch.softmax(a0 / math.sqrt(a0.shape[-1]), -1)"


POWERS = "torch.exp(a0), torch.exp2(a0)"
EXPONENTS = (1.7, -1.5, 2.5, 5.0, -3.0, 6.0, 1 / 3, 33.3, -20.1, 0.001, 0.0, 1e8, 16777217.0, 3e9)
RAISED = ", ".join(f"a0 ** {exponent}" for exponent in EXPONENTS)


@functools.cache
def of_width(floats: int, formula: str = POWERS) -> Draft:
    """Return the first draft of a formula that computes with vectors of so many floats."""
    traced = graphs(problem(f"return {formula}", "torch.randn(rows, n)"), TWO)
    drafts = sequence(traced, DeviceKind.CPU, 0, Processor(wide=True))
    return next(draft for draft in drafts if draft.configuration["VECTOR"] == floats)


@functools.cache
def drafted(formula: str) -> tuple[str, Draft]:
    """Return the reference and the first draft for it."""
    source = problem(f"return {formula}", "torch.randn(rows, n)")
    draft = propose(graphs(source, TWO), DeviceKind.CPU, number=0)
    assert draft is not None
    return source, draft


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    plain = [drafted(formula)[1].source for formula in (FUNCTIONS, *SPREADING, REDUCTIONS, SCALED)]
    together.compile([*plain, *(of_width(floats, of).source for floats in (4, 8, 16) for of in (POWERS, RAISED))])


def outputs(formula: str, x: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Return (Candidate's, reference's, reference's in float64) for one input."""
    source, draft = drafted(formula)
    reference, made = module(source).Model(), module(draft.source).ModelNew()
    with torch.no_grad():
        return flat(made(x)), flat(reference(x)), flat(reference(x.double()))


def test_functions_are_accurate_to_a_few_units_in_the_last_place() -> None:
    x = torch.cat([torch.linspace(-20, 20, 40001), torch.logspace(-38, 38, 4001), -torch.logspace(-30, 1.9, 4001)])[
        None
    ]
    got, _, oracle = outputs(FUNCTIONS, x)
    for name, g, o in zip(FUNCTIONS.split("torch.")[1:], got, oracle, strict=True):
        normal = (o.abs() > 2.0**-126) & (o.abs() < 3e38)
        error = ((g.double() - o).abs() / o.abs())[normal].max().item() * 2**23
        assert error < 3.0, f"{name} is {error:.2f} units off"


@pytest.mark.parametrize("floats", [4, 8, 16])
def test_powers_become_subnormal_and_then_zero(floats: int) -> None:
    x = torch.cat([torch.linspace(-160, -80, 8001), torch.tensor([-math.inf, math.nan, -1e30])])[None]
    with torch.no_grad():
        got = flat(module(of_width(floats).source).ModelNew()(x))
    for g, oracle in zip(got, (torch.exp(x.double()), torch.exp2(x.double())), strict=True):
        near = torch.allclose(g.double(), oracle, rtol=3 * 2.0**-23, atol=2 * 2.0**-149, equal_nan=True)
        assert near, (g.double() - oracle).abs().max()
        assert (g[oracle < 2.0**-151] == 0).all()


@pytest.mark.parametrize("floats", [4, 8, 16])
def test_any_exponent_leaves_one_rounding(floats: int) -> None:
    """Also of zeros, negative and subnormal numbers, and where a power overflows or becomes subnormal."""
    x = torch.cat([torch.logspace(-44, 38.5, 4001), torch.linspace(0.5, 2, 4001), torch.tensor(SPECIAL)])
    x = torch.cat([x, -x])[None]
    with torch.no_grad():
        results = flat(module(of_width(floats, RAISED).source).ModelNew()(x))
    for got, exponent in zip(results, EXPONENTS, strict=True):
        oracle = x.double() ** torch.tensor(exponent).double()
        rounded = oracle.float()
        assert torch.equal(got.isnan(), rounded.isnan()), exponent
        numbers = ~rounded.isnan()
        assert torch.equal(got.signbit()[numbers], rounded.signbit()[numbers]), exponent
        finite = rounded.isfinite()
        assert torch.equal(got[numbers & ~finite], rounded[numbers & ~finite]), exponent
        unit = (oracle.abs() * 2.0**-23).clamp_min(2.0**-149)
        assert ((got.double() - oracle).abs() / unit)[finite].max() < 0.52, exponent


@pytest.mark.parametrize("formula", SPREADING)
def test_special_values_spread_as_in_the_reference(formula: str) -> None:
    got, eager, _ = outputs(formula, torch.tensor(SPECIAL)[None])
    for g, e in zip(got, eager, strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-38, equal_nan=True), (g, e)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values_in_a_row_reach_its_reductions(special: float) -> None:
    x = torch.randn(3, 37)
    x[1, 20] = special
    x[2, :] = special
    got, eager, _ = outputs(REDUCTIONS, x)
    for g, e in zip(got, eager, strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-6, equal_nan=True), (g, e)


def test_a_scale_that_depends_on_a_size() -> None:
    got, eager, _ = outputs(SCALED, torch.randn(5, 91))
    assert torch.allclose(got[0], eager[0], rtol=1e-5, atol=1e-7)
