"""The roofline of a Candidate: both roofs, and which one is near."""

from __future__ import annotations

import dataclasses

import pytest

from evaluator.types import (
    Adjustment,
    BaselineTime,
    Clock,
    Evaluation,
    Interval,
    Measurement,
    Stage,
    Verdict,
    WorkloadFacts,
)
from service.rendering.charts.times import rooflines, strips, workload_times
from tests.db.world import DEVICE, ENVIRONMENT

REACH = Interval(low=90.0, high=110.0)


def evaluation(floor_us: float | None = 50.0) -> Evaluation:
    baseline = BaselineTime(mode="eager", workload="w", clock=Clock.CALLS, median_us=200.0, interval_us=REACH)
    measurement = Measurement(
        workload="w", clock=Clock.CALLS, samples_us=(100.0,), median_us=100.0, interval_us=REACH,
        baselines=(baseline,), floor_us=floor_us,
    )  # fmt: skip
    return Evaluation(
        candidate_hash="0" * 64, problem_hash="0" * 64, verdict=Verdict.PASSED, stage=Stage.TIMING, reason="right",
        evidence={"checked": "everything"}, device=DEVICE, environment=ENVIRONMENT, measurements=(measurement,),
    )  # fmt: skip


def fact(**more: float | None) -> WorkloadFacts:
    return WorkloadFacts(workload="w", inputs=(), outputs=(), bytes_moved=1_000_000, **more)  # type: ignore[arg-type]


def test_both_roofs_are_drawn_and_the_nearer_one_is_named() -> None:
    times = workload_times(evaluation(), set(), [fact(flops=8_000_000, matmul_gflops=100.0)])
    memory, arithmetic = rooflines(times)
    assert (memory.kind, memory.rate, memory.limit) == ("bytes", 10.0, 20.0)
    assert (arithmetic.kind, arithmetic.rate, arithmetic.limit) == ("arithmetic", 80.0, 100.0)
    assert (memory.nearest, arithmetic.nearest) == (False, True)
    assert memory.middle == pytest.approx(memory.roof / 2, abs=0.01)
    assert memory.low < memory.middle < memory.high
    assert memory.baselines == (("eager", pytest.approx(memory.roof / 4, abs=0.01)),)


@pytest.mark.parametrize(
    ("floor_us", "known", "kinds"),
    [
        (50.0, [fact()], ["bytes"]),
        (None, [fact(flops=8_000_000, matmul_gflops=100.0)], ["arithmetic"]),
        (None, [fact(flops=8_000_000)], []),
        (50.0, [], []),
    ],
)
def test_what_is_not_known_is_left_out(floor_us: float | None, known: list[WorkloadFacts], kinds: list[str]) -> None:
    roofs = rooflines(workload_times(evaluation(floor_us), set(), known))
    assert [one.kind for one in roofs] == kinds
    assert not any(one.nearest for one in roofs)


def test_adjustments_are_told_once_beside_the_times() -> None:
    found = evaluation()
    adjustment = Adjustment(check="single_calls", factor=1.5)
    measured = dataclasses.replace(found.measurements[0], adjustments=(adjustment, adjustment))
    (times,) = workload_times(dataclasses.replace(found, measurements=(measured,)), set())
    assert times.adjusted == strips(measured).adjusted == "single_calls: 1.5 times longer"
    assert strips(found.measurements[0]).adjusted == ""
