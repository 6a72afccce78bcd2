"""The reason of an Evaluation tells which Baselines it was compared with."""

from __future__ import annotations

import pytest

from evaluator.screening.screen import Screened
from evaluator.stages import outcomes
from evaluator.stages.outcomes import Origin
from evaluator.stages.trial import Trial
from evaluator.types import (
    BaselineReport,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Interval,
    Measurement,
    Ratio,
    Stage,
)
from tests.evaluator.rooms import forward, problem

DEVICE, ENVIRONMENT = Device(kind=DeviceKind.CPU, name="a CPU", uuid="0"), Environment(python="3.12", torch="2.13")
ORIGIN = Origin(DEVICE, ENVIRONMENT, ())
TWICE = Ratio(against="fastest", value=2.0, interval=Interval(low=1.9, high=2.1))
TIMES = Measurement(
    workload="w",
    clock=Clock.CALLS,
    samples_us=(1.0,),
    median_us=1.0,
    interval_us=Interval(low=1.0, high=1.0),
    baselines=(),
)


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (Stage.TIMING, "right on every check; 2.00x the fastest baseline so far (compile still compiling)"),
        (Stage.CONFIRM, "right on every check; 2.00x the fastest baseline"),
    ],
)
def test_a_confirmation_has_waited_for_every_baseline(stage: Stage, reason: str) -> None:
    one = problem()
    known = BaselineReport(
        problem_hash=one.hash, device=DEVICE, environment=ENVIRONMENT, times=(), pending=("compile",)
    )
    trial = Trial(problem=one, candidate=forward("return x"), kind=DeviceKind.CPU, baseline=known)
    with trial.clock.during(stage):
        assert outcomes.passed(trial, ORIGIN, Screened("", ()), {"checks": 1}, [TIMES], [TWICE]).reason == reason
