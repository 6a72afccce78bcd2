"""The course of a search: what it reached when, and how two searches compare."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from bench.search.compare import TRIED_ON
from bench.search.course import MOMENTS, WORST, Course, compare_at, course_of, read_courses, written_courses
from bench.search.landscape import Landscape, Meter
from bench.search.peers import best_of_n, searches


def climbing(each: int, seed: int = 0) -> Course:
    """Return a search that comes nearer to the best with every `each` measurements, one for each proposal."""
    steps = tuple((each * n + seed, -1.0 / n) for n in range(1, 11))
    quality = {moment: max(q for count, q in steps if count <= moment) for moment in MOMENTS}
    return Course(100, steps, {moment: (moment, quality[moment]) for moment in MOMENTS})


def test_a_meter_is_read_as_steps_and_moments(land: Landscape) -> None:
    meter = Meter(land, random.Random(0))
    ordered = sorted((k for k in land.kernels.values() if k.passed), key=lambda k: k.speedup)
    near = ordered[-3]
    for kernel in (near, ordered[0], ordered[-1]):
        meter.propose()
        meter.measure(kernel)
    meter.propose()  # a repetition, that is not measured
    found = course_of(meter, 40)
    assert found.needed == 3
    assert [count for count, _ in found.steps] == [0, 1, 3]
    assert found.quality(0) == WORST
    assert found.quality(2) == pytest.approx(math.log(near.speedup / land.best))
    assert found.quality(9) == 0.0
    assert found.at[50] == (3, 0.0)


def test_equal_searches_compare_as_equal_and_a_slower_one_as_slower() -> None:
    mine = {(f"deep.{land} on a GPU", seed): climbing(4, seed) for land in "ab" for seed in range(4)}
    slow = {key: climbing(8, key[1]) for key in mine}
    assert compare_at(mine, mine, 50, 100)["ratio"] == 1.0
    found = compare_at(mine, slow, 50, 100)
    assert found["verdict"] == "ahead"
    assert 1.7 < float(str(found["ratio"])) < 2.1
    assert compare_at(slow, mine, 50, 100)["verdict"] == "behind"


def test_courses_are_kept_as_they_were() -> None:
    courses = {("a", 3): climbing(4), ("b", 0): climbing(5)}
    assert read_courses(written_courses(courses)) == courses


def test_a_search_that_only_repeats_itself_ends(land: Landscape) -> None:
    meter = Meter(land, random.Random(0))
    assert not meter.over(1)
    for _ in range(4):
        meter.propose()
    assert meter.over(1)
    assert not meter.over(1, least=5)


def test_proposals_are_made_after_the_goal_too(land: Landscape) -> None:
    assert best_of_n(land, 0, 50, 100, True).proposals >= 100


@pytest.mark.parametrize("name", ["OpenEvolve", "ShinkaEvolve", "AdaEvolve", "EvoX", "GEPA"])
def test_the_optional_searches_run(land: Landscape, name: str) -> None:
    if name not in searches():
        pytest.skip(f"the package of {name} is not installed")
    first, again = (searches()[name](land, 1, 60, 20, True) for _ in range(2))
    assert first.proposals >= 20
    assert (first.count, first.best) == (again.count, again.best)


def test_changes_are_tried_on_half_of_the_landscapes() -> None:
    recorded = {
        path.name.removesuffix(".jsonl.gz")
        for path in (Path(__file__).parents[2] / "bench/search/landscapes").glob("*.gz")
    }
    assert set(TRIED_ON) <= recorded
    assert len(TRIED_ON) * 2 == len(recorded)
