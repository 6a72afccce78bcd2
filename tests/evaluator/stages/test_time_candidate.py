"""What a judgement makes of its Bench: measurements, and ratios over the Baselines that count."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.stages.time_candidate import Times
from evaluator.stages.trial import Trial
from evaluator.types import (
    BaselineReport,
    BaselineTime,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Interval,
    Measurement,
    Workload,
)
from tests.evaluator.rooms import forward, problem

WORKLOAD = Workload(name="w", sizes={"rows": 48})


def baseline(mode: str, us: float) -> BaselineTime:
    near = Interval(low=0.99 * us, high=1.01 * us)
    return BaselineTime(mode=mode, workload="w", clock=Clock.GRAPH, median_us=us, interval_us=near)


def bench(candidate_us: float, **baselines_us: float) -> Any:
    """A Bench that has timed a Candidate and Baselines."""
    measured = Measurement(
        workload="w", clock=Clock.GRAPH, samples_us=(candidate_us,), median_us=candidate_us,
        interval_us=Interval(low=candidate_us, high=candidate_us),
        baselines=tuple(baseline(mode, us) for mode, us in baselines_us.items()),
    )  # fmt: skip
    logs = {mode: [math.log(us / candidate_us)] * 2 for mode, us in baselines_us.items()}
    return SimpleNamespace(
        bytes_moved=1, measurement=lambda *_: measured, official_log_ratios=lambda over, _: logs[over]
    )


SESSION = cast(Any, SimpleNamespace(backend=SimpleNamespace(copy_rate_gbs=lambda: None)))


def added(known: dict[str, float]) -> Times:
    times = Times()
    times.add(SESSION, WORKLOAD, bench(5.0, compile=20.0, other=12.0), ["compile", "other"], known)
    return times


def test_a_baseline_that_was_faster_before_counts_as_it_was() -> None:
    times = added({"compile": 10.0, "eager": 30.0})
    ratios = {one.against: one.value for one in times.ratios() if one.workload is None}
    assert ratios == pytest.approx({"compile": 2.0, "other": 2.4, "fastest": 2.0})
    assert [one.median_us for one in times.measurements[0].baselines] == [10.0, 12.0]
    assert times.measurements[0].diagnostics["known_baselines"] == {"compile": {"here_us": 20.0, "counted_us": 10.0}}


def test_without_an_earlier_session_the_times_are_those_of_this_one() -> None:
    times = added({})
    ratios = {one.against: one.value for one in times.ratios() if one.workload is None}
    assert ratios == pytest.approx({"compile": 4.0, "other": 2.4, "fastest": 2.4})
    assert "known_baselines" not in times.measurements[0].diagnostics


@pytest.mark.parametrize(("kind", "known"), [(DeviceKind.CUDA, {"compile": 10.0}), (DeviceKind.CPU, {})])
def test_times_of_earlier_sessions_count_on_a_gpu(kind: DeviceKind, known: dict[str, float]) -> None:
    report = BaselineReport(
        problem_hash="p",
        device=Device(kind=kind, name="a device", uuid="0"),
        environment=Environment(python="3.12", torch="2.13"),
        times=(baseline("compile", 10.0),),
    )
    trial = Trial(problem=problem(), candidate=forward("return x"), kind=kind, baseline=report)
    assert trial.known_us(WORKLOAD) == known
    assert trial.known_us(Workload(name="another")) == {}
