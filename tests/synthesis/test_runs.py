"""Generated C++ for rows of several runs: what differs between channels of a group, as in group normalisation."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, graphs, module, problem
from tests.synthesis.together import Together

X = "torch.randn(b, 6 * c, h, w)"
NORMS = "self.m = nn.GroupNorm(6, 6 * c)\nself.k = nn.GroupNorm(3, 6 * c, affine=False, eps=0.1)"
TWO = [{"name": "a", "b": 3, "c": 2, "h": 5, "w": 7}, {"name": "b", "b": 2, "c": 5, "h": 12, "w": 11}]
CHECKED = [
    *TWO,
    {"name": "a channel each", "b": 2, "c": 1, "h": 9, "w": 4},
    {"name": "a pixel", "b": 3, "c": 4, "h": 1, "w": 1},
    {"name": "large", "b": 1, "c": 3, "h": 90, "w": 41},
    {"name": "none", "b": 0, "c": 2, "h": 3, "w": 3},
]
GROUPS = [
    "self.m(x), self.k(x)", "F.silu(self.m(x)) * 2", "self.m(x.relu() + 1)", "self.m(x) + x", "self.m(x) * y[:, :, None, None], x.exp()",
    "self.m(x.flatten(2))", "self.m(x) + y[:, :, None, None].sin()", "self.k(x).sum((2, 3))",
]  # fmt: skip
OTHERS = [
    "(x * z).sum((1, 2, 3)), torch.softmax((x + z).flatten(1), 1)", "F.layer_norm(x * z, x.shape[1:])", "F.layer_norm(x + torch.arange(x.shape[3]), x.shape[1:])",
    "(x * z).amax((1, 2, 3)), x.flatten(1).argmax(1), x * z.flatten()[None, :, None, None]", "(x * z).flatten(1).argmax(1) + 1",
]  # fmt: skip
ANY_SIZE = "F.gelu(self.m(x) - y[:, :, None, None])"


def source_of(formula: str) -> str:
    inputs = f"{X}, torch.randn(b, 6 * c), torch.randn(6 * c, 1, 1)"
    return problem(
        f"x, y, z = a0, a1, a2\nreturn {formula}", inputs, init=NORMS, sizes="b=3, c=2, h=5, w=7", init_args="c"
    )


@functools.cache
def drafts_of(formula: str, count: int = 1, threads: int = 1) -> list[Draft]:
    return list(
        itertools.islice(sequence(graphs(source_of(formula), TWO), DeviceKind.CPU, 0, Processor(threads)), count)
    )


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    drafts = [d for formula in (*GROUPS, *OTHERS, ANY_SIZE) for d in drafts_of(formula)]
    together.compile(d.source for d in [*drafts, *drafts_of(GROUPS[0], 2, threads=2)])


@pytest.mark.parametrize("formula", [*GROUPS, *OTHERS])
def test_rows_of_several_runs_are_fused(formula: str) -> None:
    draft = drafts_of(formula)[0]
    assert not draft.left
    for workload in CHECKED[: -1 if "argmax" in formula or "amax" in formula else None]:
        Pair(source_of(formula), draft.source, workload).check()


def test_threads_share_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for draft in drafts_of(GROUPS[0], 2, threads=2):
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(source_of(GROUPS[0]), draft.source, workload).check()


def test_special_values_stay_in_their_group() -> None:
    source = source_of(GROUPS[0])
    x = torch.randn(2, 12, 5, 7)
    x[1, 3, 2, 2], x[0, 7, 0, 0] = torch.inf, torch.nan
    given_ = (x, torch.randn(2, 12), torch.randn(12, 1, 1))
    with torch.no_grad():
        for g, e in zip(
            module(drafts_of(GROUPS[0])[0].source).ModelNew(2)(*given_), module(source).Model(2)(*given_), strict=True
        ):
            assert torch.allclose(g, e, rtol=1e-4, atol=1e-5, equal_nan=True)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(b=st.integers(2, 4), c=st.integers(1, 9), h=st.integers(1, 20), w=st.integers(1, 20), seed=st.integers(0, 99))
def test_any_sizes(b: int, c: int, h: int, w: int, seed: int) -> None:
    Pair(source_of(ANY_SIZE), drafts_of(ANY_SIZE)[0].source, {"b": b, "c": c, "h": h, "w": w}, seed).check()
