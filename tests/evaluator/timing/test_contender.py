"""Samples stay raw; official figures count them with the adjustments of integrity checks."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import cast

import pytest

from evaluator.report import report
from evaluator.schema import from_json, to_json
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.types import Adjustment, Clock, Evaluation, Interval, Measurement, Stage, Verdict
from tests.db.world import DEVICE, ENVIRONMENT


def contender(name: str = "candidate") -> Contender:
    samples = {100: [10.0, 11.0, 12.0], 160: [9.0, 10.0, 14.0]}
    return Contender(name, SimpleNamespace(), suspect=True, buffers={}, samples=samples)  # type: ignore[arg-type]


def test_samples_stay_raw_and_official_figures_are_adjusted_in_order() -> None:
    one, raw = contender(), contender()
    one.slow_by("repeated_integers", 1.5)
    one.raise_to("single_calls", {100: 17.0, 160: 14.0})
    one.slow_by("single_calls", 2.0)
    assert one.samples == raw.samples
    assert one.all_samples() == raw.all_samples()
    expected = {n: [2.0 * max(1.5 * us, floor) for us in raw.samples[n]] for n, floor in ((100, 17.0), (160, 14.0))}
    assert one.adjusted_samples() == expected
    assert one.official_us() == 34.0
    assert raw.official_us() == 11.0
    assert one.interval_us().low <= 34.0 <= one.interval_us().high
    bench = cast("Bench", SimpleNamespace(_contender={"slow": one, "raw": raw}.__getitem__))
    ratios = [log for logs in Bench._log_ratios_by_size(bench, "slow", "raw") for log in logs]
    assert ratios[0] == math.log(34.0 / 10.0)
    assert one.adjustments == (
        Adjustment(check="repeated_integers", factor=1.5),
        Adjustment(check="single_calls", floor_us=17.0, round_calls=100),
        Adjustment(check="single_calls", floor_us=14.0, round_calls=160),
        Adjustment(check="single_calls", factor=2.0),
    )


def test_only_what_changes_a_time_is_an_adjustment() -> None:
    one = contender()
    one.slow_by("single_calls", 1.0)
    one.raise_to("single_calls", {100: 10.0, 160: 2.0})
    assert one.adjustments == ()
    assert one.adjusted_samples() == one.samples
    one.slow_by("single_calls", 2.0)
    one.forget_samples()
    assert (one.samples, one.adjustments) == ({}, ())


@pytest.mark.parametrize("wrong", [{"factor": 0.9}, {"factor": math.inf}, {"floor_us": -1.0}, {"factor": math.nan}])
def test_an_adjustment_never_makes_a_time_shorter(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shorter"):
        Adjustment(check="single_calls", **wrong)  # type: ignore[arg-type]


def test_samples_and_adjustments_are_both_told() -> None:
    adjustments = (
        Adjustment(check="single_calls", floor_us=2.7, round_calls=100),
        Adjustment(check="single_calls", factor=1.9),
    )
    measurement = Measurement(
        workload="small", clock=Clock.CALLS, samples_us=(10.0, 10.5), median_us=19.5,
        interval_us=Interval(low=19.0, high=20.0), baselines=(), adjustments=adjustments,
    )  # fmt: skip
    found = Evaluation(
        verdict=Verdict.PASSED, stage=Stage.TIMING, reason="right", problem_hash="0" * 64, candidate_hash="0" * 64,
        evidence={"checked": "everything"}, measurements=(measurement,), device=DEVICE, environment=ENVIRONMENT,
    )  # fmt: skip
    told = to_json(found)
    assert told["measurements"][0]["samples_us"] == [10.0, 10.5]
    assert told["measurements"][0]["adjustments"][1]["factor"] == 1.9
    assert from_json(Evaluation, told) == found
    del told["measurements"][0]["adjustments"]  # as written before there were any
    assert from_json(Evaluation, told).measurements[0].adjustments == ()
    lines = report(found).splitlines()
    assert "    adjusted by single_calls: at least 2.70 us" in lines
    assert "    adjusted by single_calls: 1.9 times longer" in lines
