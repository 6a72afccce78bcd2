"""Generated C++ for rows that lie side by side: reductions over a first or a middle dimension, in strips of rows."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, compare, flat, graphs, module, problem
from tests.synthesis.three_dimensions import CHECKED, X, drafts_of, every_value, one, two
from tests.synthesis.together import Together

Y = "torch.randn(b, c, h)"
OVER = [
    "x.sum(1), x.mean(1, keepdim=True), x.amax(1), x.amin(1, keepdim=True), x.max(1).values",
    "x.sum(0), x.mean(-2) * 2", "(x > 0).sum(1), x.var(1), x.std(1, unbiased=False)",
    "torch.softmax(x, 1)", "torch.log_softmax(x, 1) + 1", "torch.logsumexp(x, 1)", "torch.softmax(x, 0)",
    "x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)", "F.normalize(x, dim=1)", "x / x.norm(dim=1, keepdim=True)",
    "(x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, unbiased=False, keepdim=True) + 1e-5)",
    "torch.softmax(torch.softmax(x, 1), 1)", "torch.softmax(x.tanh(), 1).sum(1), x + 1", "torch.softmax(x.unflatten(2, (1, x.shape[2])), 1)",
    "F.gelu(x) - torch.exp(x).amax(1, keepdim=True)", "(x.exp() * torch.arange(x.shape[1])[None, :, None]).sum(1), (x * torch.arange(x.shape[2])).amax(1)",
    "x.mean((0, 2)), (x - x.mean((0, 2), keepdim=True)).relu()",
    "torch.softmax(x, 1) + torch.softmax(x, 2)", "(x > x.mean(1, keepdim=True)) & (x < 1)",
]  # fmt: skip
WITH_OTHERS = [
    ("x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * y[:, None] + y[:, None].sin()", X, "torch.randn(c)"),
    ("torch.softmax(x.masked_fill(y > 0, float('-inf')), 1)", X, Y), ("torch.softmax(x.masked_fill(y, -1e9), 1)", X, "torch.rand(b, c, h) > 0.5"),
    ("(x * y).sum(1)", X, Y), ("(x * y[:, None]).sum(1)", X, "torch.randn(c)"), ("F.cosine_similarity(x, y, dim=1)", X, Y),
    ("torch.logsumexp(x + y, 1), (x + y).exp()", X, Y), ("torch.softmax(x * y.amax(2, keepdim=True) + y, 1)", X, "torch.randn(b, 1, h)"),
    ("(x * y).sum(1)", X, "torch.randint(0, 9, (b, c, h))"), ("torch.cat([x, y], 1).mean(1)", X, Y),
]  # fmt: skip
THREADED = ["torch.softmax(x, 1)", "x.sum(1)", "x.mean(0) * 2", "F.normalize(x, dim=1)"]
SPREADING = (
    "torch.softmax(a0, 1), torch.logsumexp(a0, 1), a0.amax(1), a0.amin(1), a0.mean(1), a0.sum(0), "
    "torch.log_softmax(a0, 1), a0 * torch.rsqrt(a0.pow(2).mean(1, keepdim=True) + 1e-5)"
)
TUNED = "torch.softmax(torch.tanh(x), 1), x.sum(1)"
ANY_SIZE = "torch.log_softmax(x, 1) * torch.rsqrt(x.var(1, unbiased=False, keepdim=True) + 0.1), x.amin(0), x.mean(0)"


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    sources = [*map(one, [*OVER, SPREADING.replace("a0", "x"), ANY_SIZE]), *(two(*case) for case in WITH_OTHERS)]
    drafts = [d for source in sources for d in drafts_of(source)]
    threaded = [d for formula in THREADED for d in drafts_of(one(formula), 2, threads=2)]
    together.compile(d.source for d in [*drafts, *threaded, *every_value(one(TUNED)), *drafts_of(one(ANY_SIZE), 2)])


def check(source: str) -> Draft:
    draft = drafts_of(source)[0]
    for workload in CHECKED:
        Pair(source, draft.source, workload).check()
    return draft


@pytest.mark.filterwarnings("ignore:.*degrees of freedom.*:UserWarning")  # of one element
@pytest.mark.parametrize("formula", OVER)
def test_reductions_over_any_dimension_are_fused(formula: str) -> None:
    draft = check(one(formula))
    assert "sweep_strip(" in draft.source
    assert not draft.left


@pytest.mark.parametrize(("formula", "first", "second"), WITH_OTHERS)
def test_with_other_inputs(formula: str, first: str, second: str) -> None:
    check(two(formula, first, second))


@pytest.mark.parametrize("formula", THREADED)
def test_threads_share_the_strips(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for draft in drafts_of(one(formula), 2, threads=2):
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(one(formula), draft.source, workload).check()


def test_every_value_of_a_tunable_is_right() -> None:
    assert {d.configuration["STRIP"] for d in every_value(one(TUNED))} == {16, 32, 64, 128, 256, 512, 1024}
    for draft in every_value(one(TUNED)):
        for workload in CHECKED:
            Pair(one(TUNED), draft.source, workload).check()


@pytest.mark.filterwarnings("ignore:.*degrees of freedom.*:UserWarning")
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(b=st.integers(1, 4), c=st.integers(1, 300), h=st.integers(1, 150), seed=st.integers(0, 99))
def test_any_sizes(b: int, c: int, h: int, seed: int) -> None:
    Pair(one(ANY_SIZE), drafts_of(one(ANY_SIZE), 2)[seed % 2].source, {"b": b, "c": c, "h": h}, seed).check()


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values_reach_the_reductions_of_their_row_alone(special: float) -> None:
    x = torch.randn(3, 37, 21)
    x[1, 20, 3], x[2, :, 20] = special, special
    source = one(SPREADING.replace("a0", "x"))
    with torch.no_grad():
        got = flat(module(drafts_of(source)[0].source).ModelNew()(x))
        eager = flat(module(source).Model()(x))
    for g, e in zip(got, eager, strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-6, equal_nan=True), (g, e)


def test_long_sums_are_as_exact_as_the_reference() -> None:
    """A float that adds up a thousand others loses digits that the reference keeps."""
    source = one("x.sum(0), x.mean(1)")
    x = torch.rand(1, 20000, 3, generator=torch.Generator().manual_seed(0)) + 1
    candidate, reference = module(drafts_of(source)[0].source).ModelNew(), module(source).Model()
    for value in (x, x.transpose(0, 1).contiguous()):
        for g, e, o in zip(candidate(value), reference(value), reference(value.double()), strict=True):
            compare(g, e, o)


def test_subnormal_and_strided_inputs() -> None:
    source = one("x.sum(1), torch.softmax(x, 1)")
    candidate, reference = module(drafts_of(source)[0].source).ModelNew(), module(source).Model()
    dense = torch.randn(3, 20, 37)
    for x in (dense * 1e-40, dense.transpose(1, 2), dense[:, ::2, 1:], dense[:1].expand(4, 20, 37)):
        for g, e, o in zip(candidate(x), reference(x), reference(x.double()), strict=True):
            compare(g, e, o)


@pytest.mark.parametrize("formula", ["torch.softmax(a0, 0)", "torch.softmax(a0.t(), -1)", "torch.softmax(a0.t(), 0)"])
def test_equal_sizes_do_not_hide_which_dimension_is_reduced(formula: str) -> None:
    source = problem(f"return {formula}", "torch.randn(n, n)", sizes="n=5")
    draft = next(sequence(graphs(source, [{"name": "a", "n": 5}, {"name": "b", "n": 70}]), DeviceKind.CPU, 0))
    assert draft.source.count('extern "C"') == 1
    for n in (1, 5, 70):
        Pair(source, draft.source, {"n": n}).check()
