"""What counts for Baselines that were compiled into slower code than in an earlier session."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.timing import known_times
from evaluator.types import BaselineTime, Clock, Interval

MODES = ("eager", "compile", "max-autotune-no-cudagraphs")
TIMES = st.dictionaries(st.sampled_from(MODES), st.floats(0.5, 1e6), min_size=1)


def test_a_slower_code_counts_as_the_code_of_the_first_session() -> None:
    """As seen on an H200: GroupNorm + SiLU of torch.compile took 10.6 us, and 19.9 us in a confirmation."""
    counted = known_times.counted_us({"eager": 28.6, "compile": 10.6}, {"eager": 28.6, "compile": 19.9})
    assert counted == {"compile": pytest.approx(10.6)}


def test_a_slower_device_is_no_slower_code() -> None:
    assert known_times.counted_us({"eager": 20.0, "compile": 10.0}, {"eager": 26.0, "compile": 13.2}) == {}
    counted = known_times.counted_us({"eager": 20.0, "compile": 10.0}, {"eager": 22.0, "compile": 20.0})
    assert counted == {"compile": pytest.approx(11.0)}


def test_what_was_not_timed_in_both_sessions_is_not_compared() -> None:
    assert known_times.counted_us({}, {"eager": 1.0, "compile": 9.0}) == {}
    assert known_times.counted_us({"eager": 1.0}, {"eager": 50.0, "compile": 9.0}) == {}
    assert known_times.counted_us({"compile": 8.0}, {"compile": 9.0}) == {"compile": 8.0}  # eager is unknown: as it is


def test_the_harness_in_a_time_is_no_slower_code() -> None:
    known = {"eager": 28.0, "compile": 10.0}
    assert known_times.counted_us(known, {"eager": 32.0, "compile": 14.0}, by_device_clock=False) == {}
    counted = known_times.counted_us(known, {"eager": 28.0, "compile": 24.0}, by_device_clock=False)
    assert counted == {"compile": pytest.approx(15.0)}


def test_a_faster_device_makes_no_code_slower() -> None:
    assert known_times.counted_us({"eager": 20.0, "compile": 10.6}, {"eager": 18.0, "compile": 10.6}) == {}


@given(TIMES, TIMES, st.booleans())
def test_no_claim_grows(known_us: dict[str, float], here_us: dict[str, float], by_device_clock: bool) -> None:
    counted = known_times.counted_us(known_us, here_us, by_device_clock=by_device_clock)
    assert "eager" not in counted
    for mode, us in here_us.items():
        assert known_times.shift([0.5, 0.1], us, counted.get(mode))[0] <= 0.5
        assert counted.get(mode, 0.0) <= us


def test_samples_stay_and_the_time_is_the_one_that_counts() -> None:
    one = BaselineTime(
        mode="compile", workload="a", clock=Clock.GRAPH, median_us=20.0, interval_us=Interval(low=19.0, high=22.0),
        samples_us=(19.0, 20.0, 22.0),
    )  # fmt: skip
    (seen,) = known_times.counting([one], {"compile": 10.0})
    assert (seen.median_us, seen.interval_us.low, seen.interval_us.high) == (10.0, 9.5, 11.0)
    assert seen.samples_us == one.samples_us
    assert known_times.counting([one], {}) == (one,)
    assert known_times.shift([0.0, math.log(2)], 20.0, 10.0) == pytest.approx([-math.log(2), 0.0])
