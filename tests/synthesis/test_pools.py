"""Generated C++ for pooling, and for tensors with a frame around them."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import functools
import itertools
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, flat, graphs, module, problem
from tests.synthesis.together import Together

X = "torch.randn(b, c, h, w) * 3"
SIZES = "b=3, c=2, h=13, w=17"
TWO = [{"name": "a", "b": 3, "c": 2, "h": 13, "w": 17}, {"name": "b", "b": 2, "c": 5, "h": 10, "w": 40}]
CHECKED = [
    *TWO,
    {"name": "small", "b": 2, "c": 3, "h": 4, "w": 4},
    {"name": "wide", "b": 1, "c": 1, "h": 6, "w": 301},
    {"name": "none", "b": 0, "c": 2, "h": 5, "w": 5},
]
POOLS = [
    "F.max_pool2d(x, 2), F.avg_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)", "F.max_pool2d(x, (4, 3), 1, (1, 0)) * 2", "F.avg_pool2d(x, 3, 1, 1).relu()",
    "F.max_pool1d(x.flatten(0, 1), 4, 1, 2).exp()", "F.avg_pool1d(x[:, 0], 3)", "F.max_pool2d(x.relu() + 1, 2, 3, 1, 2)",
    "F.avg_pool2d(x, 2, divisor_override=3)", "F.avg_pool3d(x[:, None], (1, 3, 3), 2, (0, 1, 1)) + 1", "F.max_pool3d(x[:, None], (2, 1, 2), 2, (1, 0, 1))",
    "F.max_pool2d(x, 2).sum(-1), F.pad(F.avg_pool2d(x, 2), (1, 1))", "torch.softmax(F.max_pool2d(x, 3, 1, 1), 1)", "F.pad(x, (1, 0, 1, 1)).sum(2)", "F.avg_pool2d(x, 3, 2, 1).amax(1)",
]  # fmt: skip
FRAMES = ["F.pad(x, (1, 2, 0, 3)) * 2", "F.pad(x, (3, 0), value=1.5)", "F.pad(x, (0, 0, 1, 1, 2, 0)) - 1", "F.pad(x.sin(), (1, 1)).sum(3), F.pad(x, (0, 1)) + F.pad(x, (1, 0))"]  # fmt: skip
SPECIAL = "F.max_pool2d(x, 3, 1, 1), F.avg_pool2d(x, 2, 2, 1), F.max_pool2d(x, 2)"
LEFT = ["F.avg_pool2d(x, 2, 2, 1, count_include_pad=False)", "F.max_pool2d(x, 2, ceil_mode=True)", "F.pad(x, (1, 1, 1, 1), mode='reflect')", "F.avg_pool2d(x, 10)"]  # fmt: skip


def one(formula: str) -> str:
    return problem(f"x = a0\nreturn {formula}", X, sizes=SIZES)


@functools.cache
def drafts_of(formula: str, count: int = 1, threads: int = 1) -> list[Draft]:
    return list(itertools.islice(sequence(graphs(one(formula), TWO), DeviceKind.CPU, 0, Processor(threads)), count))


def wide() -> list[Draft]:
    """Return drafts with every width of vectors."""
    drafts = sequence(graphs(one(SPECIAL), TWO), DeviceKind.CPU, 0, Processor(wide=True))
    return list({d.configuration["VECTOR"]: d for d in itertools.islice(drafts, 20)}.values())


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    drafts = [d for formula in (*POOLS, *FRAMES, SPECIAL) for d in drafts_of(formula)]
    together.compile(d.source for d in [*drafts, *drafts_of(POOLS[1], 2, threads=2), *wide()])


@pytest.mark.parametrize("formula", [*POOLS, *FRAMES])
def test_windows_and_frames_are_fused(formula: str) -> None:
    draft = drafts_of(formula)[0]
    assert not draft.left
    for workload in CHECKED:
        Pair(one(formula), draft.source, workload).check()


def test_every_width_of_vectors_is_right() -> None:
    assert {d.configuration["VECTOR"] for d in wide()} == {4, 8, 16}
    for draft in wide():
        for workload in CHECKED:
            Pair(one(SPECIAL), draft.source, workload).check()


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for draft in drafts_of(POOLS[1], 2, threads=2):
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(one(POOLS[1]), draft.source, workload).check()


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values_reach_the_windows_that_they_are_in(special: float) -> None:
    x = torch.randn(2, 3, 9, 12)
    x[0, 1, 4, 5], x[1, 0, :3, :3], x[1, 2, 8, 11] = special, special, special
    candidate, reference = module(drafts_of(SPECIAL)[0].source).ModelNew(), module(one(SPECIAL)).Model()
    for g, e in zip(flat(candidate(x)), flat(reference(x)), strict=True):
        assert torch.allclose(g, e, rtol=1e-5, atol=1e-6, equal_nan=True)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(b=st.integers(1, 3), c=st.integers(1, 3), h=st.integers(2, 20), w=st.integers(2, 70), seed=st.integers(0, 99))
def test_any_sizes(b: int, c: int, h: int, w: int, seed: int) -> None:
    Pair(one(SPECIAL), drafts_of(SPECIAL)[0].source, {"b": b, "c": c, "h": h, "w": w}, seed).check()


@pytest.mark.parametrize("formula", LEFT)
def test_other_windows_are_library_calls(formula: str) -> None:
    draft = drafts_of(f"{formula} * 2")[0]
    assert draft.left
    Pair(one(f"{formula} * 2"), draft.source, TWO[0]).check()
