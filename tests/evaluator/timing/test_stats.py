"""Intervals cover what they say, on data whose truth is known."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from evaluator.timing import stats


@pytest.mark.parametrize(
    ("probability", "df", "value"),
    [(0.975, 1, 12.7062), (0.975, 5, 2.57058), (0.999, 7, 4.78529), (0.95, 30, 1.69726), (0.025, 5, -2.57058)],
)
def test_student_quantiles_are_those_of_the_tables(probability: float, df: int, value: float) -> None:
    assert stats.student_quantile(probability, df) == pytest.approx(value, rel=1e-5)


def _noise(generator: random.Random, heavy: bool) -> float:
    value = generator.gauss(0.0, 0.02)
    return value * 8 if heavy and generator.random() < 0.1 else value


@pytest.mark.parametrize("heavy", [False, True])
def test_intervals_of_ratios_cover_the_truth(heavy: bool) -> None:
    generator, hits, runs = random.Random(5), 0, 1500
    for _ in range(runs):
        logs = [math.log(1.3) + _noise(generator, heavy) for _ in range(8)]
        _, interval = stats.ratio_interval(logs)
        hits += interval.low <= 1.3 <= interval.high
    assert 0.92 <= hits / runs <= 0.99


def test_the_bound_of_equal_kernels_rarely_lies_above_one() -> None:
    generator = random.Random(6)
    above = sum(stats.lower_bound([generator.gauss(0, 0.02) for _ in range(8)]) > 1 for _ in range(4000))
    assert above <= 14  # 4 expected


def test_one_disturbed_pair_does_not_decide() -> None:
    logs = [0.10, 0.11, 0.09, 0.10, 0.10, 0.11, 0.09, 3.0]
    value, interval = stats.ratio_interval(logs)
    assert value == pytest.approx(math.exp(0.1), rel=0.02)
    assert interval.low > 1.05


def test_what_groups_differ_by_is_no_noise() -> None:
    logs = [[0.10, 0.11, 0.09], [0.20, 0.21, 0.19]]
    assert statistics.fmean(stats.about_common_mean(logs)) == pytest.approx(0.15)
    value, interval = stats.ratio_interval(stats.about_common_mean(logs))
    pooled, wide = stats.ratio_interval([log for group in logs for log in group])
    assert value == pytest.approx(pooled, rel=0.01)
    assert interval.high - interval.low < (wide.high - wide.low) / 3


def test_an_interval_within_groups_covers_the_truth() -> None:
    generator, hits, runs = random.Random(8), 0, 2000
    for _ in range(runs):
        logs = [[offset + generator.gauss(0, 0.02) for _ in range(4)] for offset in (0.0, 0.05)]
        _, interval = stats.ratio_interval(stats.about_common_mean(logs))
        hits += interval.low <= math.exp(0.025) <= interval.high
    assert 0.92 <= hits / runs <= 0.99


@pytest.mark.parametrize("groups", [[[0.1], [0.2, 0.3]], [[0.1, 0.2], []], [[0.1]]])
def test_groups_without_a_mean_are_left_as_they_are(groups: list[list[float]]) -> None:
    assert stats.about_common_mean(groups) == [value for group in groups for value in group]


def test_combining_weights_the_parts() -> None:
    value, interval = stats.combine([[math.log(2)] * 3, [math.log(8)] * 3], [1.0, 1.0])
    assert value == pytest.approx(4.0)
    assert interval.low == pytest.approx(4.0)
    assert stats.geometric_mean([2.0, 8.0], [1.0, 3.0]) == pytest.approx(2 ** (10 / 4))


def test_the_combined_interval_covers_the_truth() -> None:
    generator, hits, runs = random.Random(7), 0, 1000
    for _ in range(runs):
        parts = [[math.log(r) + generator.gauss(0, s) for _ in range(7)] for r, s in ((1.1, 0.01), (2.0, 0.05))]
        _, interval = stats.combine(parts, [1.0, 2.0])
        truth = math.exp((math.log(1.1) + 2 * math.log(2.0)) / 3)
        hits += interval.low <= truth <= interval.high
    assert 0.92 <= hits / runs <= 0.99
