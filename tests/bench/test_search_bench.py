"""The search bench on a small artificial landscape: it counts correctly, and every search reaches the goal."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bench.search.landscape import Landscape, Meter, load
from bench.search.ours import Ours
from bench.search.peers import best_of_n, draw_any, random_search
from evaluator.types import Candidate, Language


def test_a_landscape_is_read_whole(land: Landscape) -> None:
    assert (len(land.kernels), len(land.families), len(land.broken)) == (52, 4, 4)
    kernel = land.at("f2", {"A": 4, "B": 32})
    assert kernel.hash == "221"
    assert "CONFIG = {'A': 4, 'B': 32}" in land.code(kernel)
    assert land.code(land.kernels["m1"]).split("\n")[2] == "", "a slip is a changed line"
    assert land.kernels["300"].speedup < land.kernels["000"].speedup, "what was measured twice counts twice"
    assert land.near("f0")[0] == "f1", "one edit away"


def recorded() -> list[Any]:
    """Return the recorded landscapes, smallest first; all but the first are for `--soak`."""
    paths = sorted((Path(__file__).parents[2] / "bench/search/landscapes").glob("*.gz"), key=lambda p: p.stat().st_size)
    assert len(paths) >= 3
    marks = [[], *([pytest.mark.soak] for _ in paths[1:])]
    return [pytest.param(path, id=path.name, marks=mark) for path, mark in zip(paths, marks, strict=True)]


@pytest.mark.parametrize("path", recorded())
def test_a_recorded_landscape_is_whole(path: Path) -> None:
    land = load(path)
    assert len(land.kernels) >= 50
    assert all(kernel.language != "torch" for kernel in land.kernels.values())
    assert 0.5 < sum(kernel.passed for kernel in land.kernels.values()) / len(land.kernels) < 0.99
    for kernel in list(land.kernels.values())[::40]:
        found = Candidate(source=land.code(kernel), language=Language(kernel.language))
        assert found.hash == kernel.hash, "the source of every kernel can be made again"


def test_every_search_reaches_the_goal_and_repeats(land: Landscape) -> None:
    for seed in range(3):
        found = Ours(land, seed).run(500)
        assert found is not None
        assert found == Ours(land, seed).run(500)
        assert random_search(land, seed, 2000, 0, True).reached_at is not None
        assert draw_any(land, seed, 2000, 0, True).reached_at is not None
        assert best_of_n(land, seed, 2000, 0, True).reached_at is not None


@pytest.mark.parametrize("off", ["bandit", "novelty", "tuning"])
def test_a_mechanism_can_be_left_out(land: Landscape, off: str) -> None:
    assert Ours(land, 1, off).run(2000) is not None


def test_measurements_are_counted_and_the_goal_is_the_true_best(land: Landscape) -> None:
    meter = Meter(land, random.Random(0))
    worst = min((k for k in land.kernels.values() if k.passed), key=lambda k: k.speedup)
    best = max(land.kernels.values(), key=lambda k: k.speedup)
    meter.measure(worst)
    assert meter.measure(land.kernels["m0"]) == 0.0
    assert meter.reached_at is None
    meter.measure(best, cost=4)
    assert (meter.count, meter.reached_at) == (6, 6)
