"""Generated C++ for inputs that lie across the rows of a kernel: transposed in tiles."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.synthesis.checking import Pair, flat, module
from tests.synthesis.three_dimensions import CHECKED, X, drafts_of, every_value, two
from tests.synthesis.together import Together

TURNED = [
    ("x.transpose(1, 2) * y", X, "torch.randn(b, h, c)"), ("y + F.gelu(x.transpose(1, 2)), y - 1", X, "torch.randn(b, h, c)"),
    ("x.permute(1, 2, 0) + y", "torch.randn(h, b, c)", "torch.randn(b, c, h)"), ("(x.transpose(1, 2) * y.transpose(1, 2) + 1).contiguous(), y.transpose(1, 2) - 1", X, "torch.randn(b, c, h)"),
    ("torch.where(y, x.transpose(1, 2), 0.5)", X, "torch.rand(b, h, c) > 0.5"), ("x.transpose(1, 2).flatten(1) + y", X, "torch.randn(h * c)"),
    ("x.permute(2, 0, 1) * y[:, None] + y[:, None].exp()", X, "torch.randn(h, c)"),
    ("F.layer_norm(x.transpose(1, 2) + y, y.shape[-1:])", X, "torch.randn(b, h, c)"),
    ("torch.softmax(x.transpose(1, 2) * y, -1), y.exp()", X, "torch.randn(b, h, c)"),
    ("(x.transpose(1, 2) * y.transpose(1, 2)).amax(-1, keepdim=True) + torch.softmax(x.transpose(1, 2), -1)", X, "torch.randn(b, c, h)"),
]  # fmt: skip
TUNED = ("x.transpose(1, 2) * y, torch.softmax(torch.tanh(x.transpose(1, 2)) + y, -1)", X, "torch.randn(b, h, c)")
ANY_SIZE = ("x.transpose(1, 2) + y, torch.log_softmax(x.transpose(1, 2) * y, -1)", X, "torch.randn(b, h, c)")


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    drafts = [d for case in (*TURNED, ANY_SIZE) for d in drafts_of(two(*case), 2)]
    threaded = [d for case in TURNED[::4] for d in drafts_of(two(*case), 2, threads=2)]
    together.compile(d.source for d in [*drafts, *threaded, *every_value(two(*TUNED))])


@pytest.mark.parametrize("case", TURNED)
def test_what_lies_across_the_rows_is_transposed_in_tiles(case: tuple[str, str, str]) -> None:
    source = two(*case)
    draft = drafts_of(source)[0]
    assert "transpose(" in draft.source.partition('extern "C"')[2].partition("_library")[0]
    for workload in CHECKED:
        Pair(source, draft.source, workload).check()


@pytest.mark.parametrize("case", TURNED[::4])
def test_threads_share_the_tiles(case: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for draft in drafts_of(two(*case), 2, threads=2):
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(two(*case), draft.source, workload).check()


def test_every_value_of_a_tunable_is_right() -> None:
    assert {d.configuration["TILE"] for d in every_value(two(*TUNED))} == {16, 32, 64}
    for draft in every_value(two(*TUNED)):
        for workload in CHECKED:
            Pair(two(*TUNED), draft.source, workload).check()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(b=st.integers(1, 4), c=st.integers(1, 300), h=st.integers(1, 150), seed=st.integers(0, 99))
def test_any_sizes(b: int, c: int, h: int, seed: int) -> None:
    Pair(two(*ANY_SIZE), drafts_of(two(*ANY_SIZE), 2)[seed % 2].source, {"b": b, "c": c, "h": h}, seed).check()


def test_values_and_strides_of_any_kind() -> None:
    source = two(*TURNED[0])
    candidate, reference = module(drafts_of(source)[0].source).ModelNew(), module(source).Model()
    x, y = torch.randn(3, 70, 37), torch.randn(3, 37, 70)
    x[0, 3:6, 5] = torch.tensor([math.nan, math.inf, 1e-40])
    for a, b in ((x, y), (y.transpose(1, 2), x.transpose(1, 2)), (x[:, ::2, 1:], y[:, 1:, ::2])):
        for got, expected in zip(flat(candidate(a, b)), flat(reference(a, b)), strict=True):
            assert torch.allclose(got, expected, rtol=1e-6, atol=0, equal_nan=True)
