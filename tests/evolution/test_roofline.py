"""A Run ends at the roofline of its device, where that is known well enough, and nowhere else."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Workload,
    WorkloadFacts,
)
from evolution.roofline import attained
from evolution.search import decide
from evolution.state import SearchState, StandingChampion
from evolution.types import Budget, EndReason, Finish, RunConfig, Spend

WORKLOADS = (Workload(name="a"), Workload(name="b", weight=3.0), Workload(name="hidden", held_out=True))
MIB = 2**20


def fact(name: str, *, written: str = "bfloat16 [512, 1024]", flops: int | None = None) -> WorkloadFacts:
    return WorkloadFacts(
        workload=name, inputs=("bfloat16 [512, 1024]",), outputs=(written,), bytes_moved=2 * MIB, flops=flops,
        floor_us=10.0, matmul_gflops=1e6,
    )  # fmt: skip


FACTS = (fact("a"), fact("b"))


def measured(name: str, share: float, floor_us: float | None = 10.0) -> Measurement:
    us = 10.0 / share
    interval = Interval(low=us, high=us)
    return Measurement(
        workload=name, clock=Clock.GRAPH, samples_us=(us,), median_us=us, interval_us=interval, baselines=(),
        floor_us=floor_us,
    )  # fmt: skip


def confirmed(*measurements: Measurement, kind: DeviceKind = DeviceKind.CUDA) -> Evaluation:
    return Evaluation(
        verdict=Verdict.PASSED, stage=Stage.CONFIRM, reason="right", problem_hash="p", candidate_hash="c",
        evidence={"promote": True}, measurements=measurements, device=Device(kind=kind, name="H200", uuid="0"),
        environment=Environment(python="3.12", torch="2.11"),
    )  # fmt: skip


BOTH = confirmed(measured("a", 0.9), measured("b", 0.98))


def test_it_is_the_weighted_mean_over_workloads() -> None:
    expected = math.exp((math.log(0.9) + 3 * math.log(0.98)) / 4)
    assert attained(BOTH, WORKLOADS, FACTS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("evaluation", "facts"),
    [
        pytest.param(replace(BOTH, device=Device(kind=DeviceKind.CPU, name="c", uuid="0")), FACTS, id="on a CPU"),
        pytest.param(confirmed(measured("a", 0.9, None), measured("b", 0.98)), FACTS, id="a floor is unknown"),
        pytest.param(confirmed(measured("a", 0.9)), FACTS, id="a workload is missing"),
        pytest.param(confirmed(measured("a", 0.9), measured("b", 1.1)), FACTS, id="a kernel beat the floor"),
        pytest.param(BOTH, (FACTS[0],), id="nothing is known of a workload"),
        pytest.param(BOTH, (FACTS[0], fact("b", written="bfloat16 [512]")), id="little is written"),
        pytest.param(BOTH, (FACTS[0], fact("b", written="what [512]")), id="outputs cannot be read"),
        pytest.param(BOTH, (FACTS[0], fact("b", flops=10**12)), id="arithmetic takes longer"),
        pytest.param(BOTH, (FACTS[0], replace(fact("b", flops=1), matmul_gflops=None)), id="arithmetic is unknown"),
    ],
)
def test_a_floor_that_is_unknown_or_crude_says_nothing(
    evaluation: Evaluation, facts: tuple[WorkloadFacts, ...]
) -> None:
    assert attained(evaluation, WORKLOADS, facts) is None


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_it_lies_between_the_workloads(a: float, b: float) -> None:
    found = attained(confirmed(measured("a", a), measured("b", b)), WORKLOADS, FACTS)
    assert found is not None
    assert min(a, b) * (1 - 1e-9) <= found <= max(a, b) * (1 + 1e-9)


def state(reached: float | None, share: float | None = 0.95, proposers: tuple[str, ...] = ()) -> SearchState:
    return SearchState(
        config=RunConfig(roofline_share=share, proposers=proposers or ("synthesiser",)),
        budget=Budget(candidates=50),
        spend=Spend(candidates=5),
        judged_any=True,
        champion=StandingChampion(candidate_id="c1", hash="h", speedup=1.4, own=True, attained=reached),
    )


def test_a_run_ends_at_its_share_of_the_roofline_and_says_so() -> None:
    (end,) = decide(state(0.96), Random(0))
    assert isinstance(end, Finish)
    assert end.reason is EndReason.ROOFLINE_REACHED
    assert "attains 96 % of the memory roofline (a run ends at 95 %)" in end.message
    assert "1.40x as fast" in end.message


@pytest.mark.parametrize(("reached", "share"), [(0.94, 0.95), (None, 0.95), (0.99, None), (0.96, 0.97)])
def test_else_it_goes_on(reached: float | None, share: float | None) -> None:
    assert not any(isinstance(found, Finish) for found in decide(state(reached, share), Random(0)))


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, math.nan])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="roofline_share"):
        RunConfig(roofline_share=share)


@pytest.mark.parametrize(("reached", "candidates"), [(0.94, 6), (0.8, 26)])
def test_a_run_with_a_model_ends_where_the_headroom_is_not_worth_another_call(reached: float, candidates: int) -> None:
    paid = state(reached, proposers=("synthesiser", "model-a"))
    assert not any(isinstance(one, Finish) for one in decide(replace(paid, since_best=candidates - 1), Random(0)))
    spent = replace(paid, since_best=candidates)
    (end,) = decide(spent, Random(0))
    assert isinstance(end, Finish)
    assert end.reason is EndReason.STAGNATED
    assert f"attains {100 * reached:.0f} %" in end.message
    assert "not worth its price" in end.message
    free = replace(spent, config=RunConfig(proposers=("synthesiser",)))
    ignored = replace(spent, config=RunConfig(proposers=("synthesiser", "model-a"), roofline_share=None))
    unknown = replace(spent, champion=None)
    for other in (free, ignored, unknown):
        assert not any(isinstance(one, Finish) for one in decide(other, Random(0)))
