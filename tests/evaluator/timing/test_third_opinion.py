"""The third opinion: it tells what disagrees, and lowers claims, never raises them."""

from __future__ import annotations

import math

import pytest

from evaluator.devices.base import PlainLoop
from evaluator.report import report
from evaluator.timing import third_opinion
from evaluator.timing.third_opinion import ThirdOpinion
from evaluator.types import (
    Clock,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Measurement,
    Stage,
    Verdict,
)

DEVICE = Device(kind=DeviceKind.CPU, name="a CPU", uuid="cpu-0")
ENVIRONMENT = Environment(python="3.11", torch="2.13")


def opinion(**call_us: float) -> ThirdOpinion:
    made = ThirdOpinion()
    for turn in range(4):
        made.note({name: PlainLoop(us * (1 + 0.001 * turn)) for name, us in call_us.items()})
    made.note_kernels({name: PlainLoop(us, kernels_us=2.0) for name, us in call_us.items()})
    return made


@pytest.mark.parametrize(
    ("official_us", "plain_us", "disagrees"),
    [(8.9, 2.66, True), (2.9, 2.66, False), (2.97, 2.66, True), (105.0, 100.0, False), (112.0, 100.0, True)],
)
def test_times_disagree_beyond_a_tenth_or_a_third_of_a_microsecond(official_us, plain_us, disagrees) -> None:
    assert opinion(candidate=plain_us).disagrees("candidate", official_us) is disagrees


def test_the_smaller_gain_is_claimed_where_times_disagree() -> None:
    official = [math.log(2.0)] * 4
    lowered = opinion(candidate=100.0, eager=120.0).lowered("eager", official, {"candidate": 100.0, "eager": 200.0})
    assert [math.exp(log) for log in lowered] == pytest.approx([1.2] * 4)
    (told,) = third_opinion.adjustment(official, lowered)
    assert str(told) == "plain_loop: 1.67 times longer"


@pytest.mark.parametrize(
    ("plain", "official_us"),
    [
        pytest.param({"candidate": 100.0, "eager": 190.0}, {"candidate": 100.0, "eager": 200.0}, id="they agree"),
        pytest.param({"candidate": 50.0, "eager": 200.0}, {"candidate": 100.0, "eager": 200.0}, id="a larger gain"),
    ],
)
def test_a_claim_stays_where_times_agree_or_the_plain_gain_is_larger(plain, official_us) -> None:
    official = [math.log(2.0)] * 4
    assert opinion(**plain).lowered("eager", official, official_us) is official
    assert third_opinion.adjustment(official, official) == ()


def test_further_loops_are_not_needed_once_two_of_each_bear_the_times_out() -> None:
    official_us = {"candidate": 100.0, "eager": 200.0}
    found = ThirdOpinion()
    assert not found.bears_out(official_us)
    for turn in range(2):
        assert not found.bears_out(official_us)
        found.note({"candidate": PlainLoop(99.0 + turn), "eager": PlainLoop(201.0)})
    assert found.bears_out(official_us)
    assert not found.bears_out({**official_us, "eager": 240.0})


def test_both_times_are_told_beside_the_kernels_own() -> None:
    told = opinion(candidate=2.66).told({"candidate": 8.9})
    assert told == {"candidate": {"official_us": 8.9, "plain_us": 2.664, "kernels_us": 2.0, "disagrees": True}}


def test_a_report_says_what_disagrees() -> None:
    told = opinion(candidate=2.66, again=2.66, eager=40.0).told({"candidate": 8.9, "again": 8.9, "eager": 41.0})
    measurement = Measurement(
        workload="w", clock=Clock.GRAPH, samples_us=(8.9,), median_us=8.9,
        interval_us=Interval(low=8.0, high=9.0), baselines=(),
    )  # fmt: skip
    found = Evaluation(
        verdict=Verdict.PASSED, stage=Stage.CONFIRM, reason="right", problem_hash="0" * 64, candidate_hash="0" * 64,
        evidence={"third_opinion": {"w": told}}, measurements=(measurement,), device=DEVICE, environment=ENVIRONMENT,
    )  # fmt: skip
    (line,) = [line.strip() for line in report(found).splitlines() if "plain loop" in line]
    assert line == "in a plain loop: candidate 2.7 us, kernels 2.0 (disagrees); eager 40.1 us, kernels 2.0"
