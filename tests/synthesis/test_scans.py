"""Generated C++ for what depends on the place in a row: scans, first places of extrema, tensors turned round."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.synthesis.checking import Pair, flat, module, problem
from tests.synthesis.three_dimensions import CHECKED, SIZES, drafts_of, every_value, one, two
from tests.synthesis.together import Together

TIES = "torch.randn(b, c, h).mul(2).round()"
SCANS = [
    "torch.cumsum(x, 2), torch.cumsum(x, 1), torch.cumsum(x * 2, 0)", "torch.cumprod(x / 2, -1), torch.cumprod(x / 2, 1)",
    "x.cummax(-1).values, x.cummax(1)[0], x.cummin(2)[0], x.cummin(0).values",
    "torch.softmax(torch.cumsum(x, -1), -1), torch.cumsum(torch.softmax(x, -1), -1)", "torch.softmax(torch.cumsum(x, 1), 1) + 1",
    "torch.cumsum(x.flip(2), 2).flip(2)", "torch.cumsum(x.flip(1), 1).flip(1)", "x.exp().flip(2).cumprod(2).flip(2) + x",
    "x.flip(2) * 2 + x, x.flip((0, 1))", "torch.cumsum(x, 2)[:, :, 1:] - x[:, :, 1:]", "x.flip(0, 1, 2).flip(1)",
    "torch.cat((torch.zeros_like(x[:, :, :1]), torch.cumsum(x[:, :, :-1], 2)), 2)", "torch.cumsum(x, 2).sum(2), torch.cumsum(x, 2).amax(2)",
]  # fmt: skip
PLACES = [
    "x.argmax(2), x.argmin(2, keepdim=True), x.max(2).values", "x.argmax(1), x.argmin(1), *x.max(1)", "*x.min(-1, keepdim=True), (x + 1).argmax(1, keepdim=True)",
    "x.exp().argmax(2), torch.softmax(x, 1).argmax(1)",
]  # fmt: skip
OF_ALL = "x.argmax(), x.argmin(), x.argmax(0), *x.min(0)"
MASKED = ("torch.cumsum(x * y, 1), torch.cumsum(x * y, 2)", TIES, "torch.rand(b, c, h) > 0.5")
SPREADING = "x.cumsum(1), x.cumsum(2), x.cumprod(2), x.cummax(1)[0], x.cummin(2)[0], x.argmax(1), x.argmin(1), x.argmax(2), x.argmin(2), *x.max(2)"
TUNED = "torch.cumsum(x, 2), x.argmin(2), torch.cumsum(x, 1), x.argmax(1)"
THREADED = ["torch.cumsum(x, 2), x.argmax(2)", "torch.cumprod(x / 2, 1), x.argmin(1)"]


def tied(formula: str) -> str:
    return problem(f"x = a0\nreturn {formula}", TIES, sizes=SIZES)


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    sources = [*map(one, [*SCANS, SPREADING]), *map(tied, [*PLACES, OF_ALL]), two(*MASKED)]
    drafts = [d for source in sources for d in drafts_of(source)]
    threaded = [d for formula in THREADED for d in drafts_of(one(formula), 2, threads=2)]
    together.compile(d.source for d in [*drafts, *threaded, *every_value(one(TUNED))])


@pytest.mark.parametrize("source", [*map(one, SCANS), *map(tied, PLACES), two(*MASKED)])
def test_values_that_depend_on_their_place_are_fused(source: str) -> None:
    draft = drafts_of(source)[0]
    assert not draft.left
    for workload in CHECKED:
        Pair(source, draft.source, workload).check()


def test_places_in_whole_tensors() -> None:
    draft = drafts_of(tied(OF_ALL))[0]
    assert not draft.left
    for workload in CHECKED[:-1]:  # a tensor without elements has no largest
        Pair(tied(OF_ALL), draft.source, workload).check()


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values(special: float) -> None:
    """The first NaN is the place of an extremum; a row of infinities has its first."""
    x = torch.randn(4, 37, 21)
    x[1, 20, 3], x[1, 30, 3], x[1, 20, 9], x[2, :, 20], x[3] = special, special, special, special, special
    candidate, reference = module(drafts_of(one(SPREADING))[0].source).ModelNew(), module(one(SPREADING)).Model()
    for g, e in zip(flat(candidate(x)), flat(reference(x)), strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-6, equal_nan=True), (g, e)


def test_long_scans_carry_as_many_digits_as_the_reference() -> None:
    source = one(SCANS[0])
    x = torch.rand(1, 30000, 2, generator=torch.Generator().manual_seed(0)) + 1
    candidate, reference = module(drafts_of(source)[0].source).ModelNew(), module(source).Model()
    for value in (x, x.transpose(1, 2).contiguous(), x.transpose(0, 1).contiguous()):
        for g, o in zip(candidate(value), reference(value.double()), strict=True):
            assert (g / o - 1).abs().max() < 1e-7


@pytest.mark.parametrize("formula", THREADED)
def test_threads_share_the_rows(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for draft in drafts_of(one(formula), 2, threads=2):
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(one(formula), draft.source, workload).check()


def test_one_row_is_left_to_one_thread() -> None:
    source = problem("return a0.cumsum(0)", "torch.randn(n)", sizes="n=100")
    assert not any("#pragma omp" in d.source for d in drafts_of(source, 4, threads=2))


def test_every_value_of_a_tunable_is_right() -> None:
    for draft in every_value(one(TUNED)):
        for workload in CHECKED:
            Pair(one(TUNED), draft.source, workload).check()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(b=st.integers(1, 4), c=st.integers(1, 150), h=st.integers(1, 150), seed=st.integers(0, 99))
def test_any_sizes(b: int, c: int, h: int, seed: int) -> None:
    Pair(one(TUNED), every_value(one(TUNED))[seed % 5].source, {"b": b, "c": c, "h": h}, seed).check()


@pytest.mark.parametrize("formula", ["x * 2, x.long().cumsum(1)", "x * 2, x.long().argmax(1)", "x * 2, *x.cummax(1)"])
def test_what_kernels_do_not_compute_is_a_library_call(formula: str) -> None:
    draft = drafts_of(one(formula))[0]
    assert draft.left
    Pair(one(formula), draft.source, CHECKED[0]).check()
