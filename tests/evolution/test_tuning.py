"""The inner search: everything once, the best soon, and what relatives have taught."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.state import Family
from evolution.tunables import Scalar, key_of
from evolution.tuning import next_configuration

TUNABLES: dict[str, tuple[Scalar, ...]] = {"BLOCK": (256, 512, 1024, 2048), "WARPS": (2, 4, 8), "EVICT": ("", "first")}
GRID = [dict(zip(TUNABLES, values, strict=True)) for values in itertools.product(*TUNABLES.values())]
Seen = tuple[tuple[Mapping[str, Scalar], float], ...]


def family(name: str, seen: Seen, tunables: Mapping[str, tuple[Scalar, ...]] = TUNABLES) -> Family:
    tried = frozenset(key_of(configuration) for configuration, _ in seen)
    return Family(family=name, candidate_id=f"cand_{name}", tunables=tunables, seen=seen, tried=tried)


def worth(configuration: Mapping[str, Scalar]) -> float:
    """Best at BLOCK 1024 and WARPS 8; the two depend on each other a little."""
    block = TUNABLES["BLOCK"].index(configuration["BLOCK"])
    warps = TUNABLES["WARPS"].index(configuration["WARPS"])
    return math.exp(-0.15 * abs(block - 2) - 0.2 * (2 - warps) - 0.05 * (block == 0 and warps == 2))


@given(st.integers(0, 1000))
def test_every_configuration_is_tried_once_and_then_none_is_left(seed: int) -> None:
    rng = Random(seed)
    seen: Seen = ((GRID[0], 1.0),)
    while (found := next_configuration([family("a", seen)], rng)) is not None:
        assert key_of(found[1]) not in {key_of(configuration) for configuration, _ in seen}
        seen = (*seen, (found[1], rng.choice((0.0, 0.5, 1.0))))
    assert len(seen) == len(GRID)


def test_a_grid_that_is_too_large_to_list_is_sampled() -> None:
    tunables = {f"T{n}": tuple(range(60)) for n in range(20)}
    found = next_configuration([family("a", ((dict.fromkeys(tunables, 30), 1.0),), tunables)], Random(2))
    assert found is not None
    assert set(found[1]) == set(tunables)


def test_the_best_is_found_sooner_than_by_chance() -> None:
    needed = []
    for seed in range(30):
        rng = Random(seed)
        first = rng.choice(GRID)
        seen: Seen = ((first, worth(first)),)
        while max(speedup for _, speedup in seen) < 0.99:
            found = next_configuration([family("a", seen)], rng)
            assert found is not None
            seen = (*seen, (found[1], worth(found[1]) * rng.lognormvariate(0, 0.01)))
        needed.append(len(seen))
    assert sum(needed) / len(needed) < 8  # two of 24 are that good: by chance it takes 8.3


def test_a_relative_has_taught_which_values_are_good() -> None:
    old = family("old", tuple((configuration, worth(configuration)) for configuration in GRID[::2]))
    bad = GRID[0]
    new = family("new", ((bad, 1.3 * worth(bad)),))
    firsts = [next_configuration([old, new], Random(seed)) for seed in range(10)]
    for found in firsts:
        assert found is not None
        assert found[0].family == "new", "the new one promises more, though it was seen at its worst"
        assert (found[1]["BLOCK"], found[1]["WARPS"]) == (1024, 8)


@pytest.mark.parametrize(("least", "expected"), [(-math.inf, True), (0.01, True), (3.0, False)])
def test_nothing_is_tried_that_promises_too_little(least: float, expected: bool) -> None:
    seen = tuple((configuration, worth(configuration)) for configuration in GRID[:12])
    assert (next_configuration([family("a", seen)], Random(1), least=least) is not None) is expected


def test_what_failed_is_known_for_it() -> None:
    seen = tuple((c, 0.0 if c["WARPS"] == 8 else 1.0) for c in GRID if c["BLOCK"] != 1024)
    found = next_configuration([family("a", seen)], Random(1))
    assert found is not None
    assert found[1]["WARPS"] != 8
