"""The search bench on a small made-up landscape: it counts what it says, and every search gets there."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from bench.search.landscape import Landscape, Meter, load
from bench.search.ours import Ours
from bench.search.peers import best_of_n, random_search

TUNABLES = {"A": [1, 2, 4, 8], "B": [16, 32, 64]}


@pytest.fixture
def land(tmp_path: Path) -> Landscape:
    rng = random.Random(1)
    lines: list[dict[str, object]] = [{"problem": "made", "device": {"name": "up"}}]
    base = {"niche": "plain/simd/plain", "language": "cpp", "device_s": 1.0}
    for family in range(4):
        for a, b in itertools.product(range(4), range(3)):
            speedup = (1 + family / 4) * 0.9 ** abs(a - family) * 0.9 ** abs(b - 1) * rng.lognormvariate(0, 0.02)
            configuration = {"A": TUNABLES["A"][a], "B": TUNABLES["B"][b]}
            lines.append({
                **base, "hash": f"{family}{a}{b}", "family": f"f{family}", "verdict": "PASSED", "speedup": speedup,
                "low": speedup * 0.98, "high": speedup * 1.02, "origin": None, "tunables": TUNABLES,
                "configuration": configuration,
            })  # fmt: skip
        lines.append({
            **base, "hash": f"m{family}", "family": f"f{family}", "verdict": "INCORRECT_VALUES", "speedup": None,
            "low": None, "high": None, "origin": f"{family}00", "tunables": {}, "configuration": {},
        })  # fmt: skip
    path = tmp_path / "made.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return load(path)


def test_every_search_gets_there_and_is_the_same_again(land: Landscape) -> None:
    for seed in range(3):
        found = Ours(land, seed).run(500)
        assert found is not None
        assert found == Ours(land, seed).run(500)
        assert random_search(land, seed, 2000, True) is not None
        assert best_of_n(land, seed, 2000, True) is not None


@pytest.mark.parametrize("off", ["niches", "bandit", "novelty", "tuning", "re-measurement"])
def test_a_mechanism_can_be_taken_out(land: Landscape, off: str) -> None:
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
