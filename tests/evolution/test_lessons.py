"""Lessons: what matched pairs say, and nothing that they leave open."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.lessons import MAX_LESSONS, MIN_PAIRS, Trial, describe, distil


def trials(worth: dict[int, float], *, families: int = 4, noise: float = 0.01, seed: int = 0) -> list[Trial]:
    """Every Configuration of some families, UNROLL being worth so much and TILE nothing."""
    rng = Random(seed)
    return [
        Trial(
            family=f"f{family}",
            language="cpp",
            configuration={"UNROLL": unroll, "TILE": tile},
            speedups={"": 1.5 * (1 + family) * worth[unroll] * math.exp(rng.gauss(0, noise))},
        )
        for family, unroll, tile in itertools.product(range(families), worth, (8, 16))
    ]


def test_a_value_that_is_worth_something_is_learned_with_its_interval() -> None:
    (lesson, *rest) = distil(trials({1: 1.0, 4: 1.2}))
    assert (lesson.tunable, lesson.value, lesson.language, lesson.workload) == ("UNROLL", "4", "cpp", "")
    assert lesson.low < 1.2 < lesson.high
    assert lesson.ratio == pytest.approx(1.2, rel=0.02)
    assert lesson.pairs == 8
    assert rest == []
    assert describe(lesson).startswith("UNROLL = 4 ran 1.2")


def test_each_workload_has_lessons_of_its_own() -> None:
    found = [
        Trial(
            family=t.family,
            language="cpp",
            configuration=t.configuration,
            speedups={"long": t.speedups[""], "wide": 1.0},
        )
        for t in trials({1: 1.0, 4: 1.2})
    ]
    (lesson,) = distil(found)
    assert lesson.workload == "long"
    assert " on long " in describe(lesson)


def test_what_noise_explains_is_no_lesson() -> None:
    assert distil(trials({1: 1.0, 4: 1.03}, noise=0.3)) == ()


def test_families_that_differ_are_never_compared() -> None:
    apart = [
        Trial(family=f"f{n}", language="cpp", configuration={"A": n % 2}, speedups={"": 1.0 + n % 2}) for n in range(20)
    ]
    assert distil(apart) == ()


def test_few_pairs_teach_nothing() -> None:
    assert distil(trials({1: 1.0, 4: 1.2}, families=1)) == ()
    assert MIN_PAIRS == 3


configurations = st.fixed_dictionaries(
    {"A": st.sampled_from([1, 2, 4]), "B": st.sampled_from(["", "x"]), "C": st.booleans()}
)
drawn = st.lists(
    st.builds(
        Trial,
        family=st.sampled_from("pq"),
        language=st.sampled_from(["cpp", "triton"]),
        configuration=configurations,
        speedups=st.dictionaries(st.sampled_from(["", "long"]), st.floats(0.01, 100.0), max_size=2),
    ),
    max_size=60,
)


@given(drawn, st.randoms(use_true_random=False))
def test_lessons_are_sure_few_and_do_not_depend_on_the_order(found: list[Trial], rng: Random) -> None:
    lessons = distil(found)
    assert len(lessons) <= MAX_LESSONS
    for one in lessons:
        assert 1.0 < one.low <= one.ratio * (1 + 1e-9)
        assert one.ratio <= one.high * (1 + 1e-9)
        assert any(repr(t.configuration[one.tunable]) == one.value for t in found)
    shuffled = [*found]
    rng.shuffle(shuffled)
    assert [(o.tunable, o.workload, o.pairs) for o in distil(shuffled)] == [
        (o.tunable, o.workload, o.pairs) for o in lessons
    ]
