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


def bench(candidate_us: float, by_device_clock: bool, **baselines_us: float) -> Any:
    """A Bench that has timed a Candidate and Baselines."""
    measured = Measurement(
        workload="w", clock=Clock.GRAPH, samples_us=(candidate_us,), median_us=candidate_us,
        interval_us=Interval(low=candidate_us, high=candidate_us),
        baselines=tuple(baseline(mode, us) for mode, us in baselines_us.items()),
        diagnostics={"device_clock": by_device_clock},
    )  # fmt: skip
    logs = {mode: [math.log(us / candidate_us)] * 2 for mode, us in baselines_us.items()}
    return SimpleNamespace(
        bytes_moved=1, measurement=lambda *_: measured, official_log_ratios=lambda over, _: logs[over]
    )


SESSION = cast(Any, SimpleNamespace(backend=SimpleNamespace(copy_rate_gbs=lambda: None)))


def trial(kind: DeviceKind, *known: BaselineTime) -> Trial:
    """A Trial after a session that measured these Baselines."""
    report = BaselineReport(
        problem_hash="p",
        device=Device(kind=kind, name="a device", uuid="0"),
        environment=Environment(python="3.12", torch="2.13"),
        times=known,
    )
    return Trial(problem=problem(), candidate=forward("return x"), kind=kind, baseline=report)


def added(*known: BaselineTime, by_device_clock: bool = True) -> Times:
    times = Times()
    found = bench(5.0, by_device_clock, compile=20.0, other=12.0)
    times.add(SESSION, trial(DeviceKind.CUDA, *known), WORKLOAD, found, ["compile", "other"])
    return times


def test_a_baseline_that_was_faster_before_counts_as_it_was() -> None:
    times = added(baseline("compile", 10.0), baseline("eager", 30.0))
    ratios = {one.against: one.value for one in times.ratios() if one.workload is None}
    assert ratios == pytest.approx({"compile": 2.0, "other": 2.4, "fastest": 2.0})
    assert [one.median_us for one in times.measurements[0].baselines] == [10.0, 12.0]
    assert times.measurements[0].diagnostics["known_baselines"] == {"compile": {"here_us": 20.0, "counted_us": 10.0}}


def test_times_with_the_harness_in_them_are_not_compared_with_times_without() -> None:
    assert "known_baselines" not in added(baseline("compile", 15.0), by_device_clock=False).measurements[0].diagnostics
    slower = added(baseline("compile", 9.0), by_device_clock=False).measurements[0]
    assert slower.diagnostics["known_baselines"] == {"compile": {"here_us": 20.0, "counted_us": 14.0}}


def test_without_an_earlier_session_the_times_are_those_of_this_one() -> None:
    times = added()
    ratios = {one.against: one.value for one in times.ratios() if one.workload is None}
    assert ratios == pytest.approx({"compile": 4.0, "other": 2.4, "fastest": 2.4})
    assert "known_baselines" not in times.measurements[0].diagnostics


@pytest.mark.parametrize(("kind", "known"), [(DeviceKind.CUDA, {"compile": 10.0}), (DeviceKind.CPU, {})])
def test_times_of_the_same_clock_count_on_a_gpu(kind: DeviceKind, known: dict[str, float]) -> None:
    """A kernel that no graph captures is timed call by call, and so are its comparators."""
    one = trial(kind, baseline("compile", 10.0))
    assert one.known_us(WORKLOAD, Clock.GRAPH) == known
    assert one.known_us(WORKLOAD, Clock.CALLS) == {}
    assert one.known_us(Workload(name="another"), Clock.GRAPH) == {}
