"""Several kernels in one: proposed where no one kernel wins everywhere, beyond what the intervals leave open."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.types import Language
from evolution.arms import DISPATCH
from evolution.dispatch import LOSING_AFTER, MIN_LOG_GAIN, REFERENCE, STAGNANT_AFTER, best_split, dispatch_due
from evolution.search import decide
from evolution.state import ArmStats, Elite, RatedCandidate, SearchState, WorkloadLeaders
from evolution.types import Arm, Budget, Operator, Propose, RunConfig, Spend


def rated(number: int, speedup: float, *, spread: float = 0.01, combined: bool = False) -> RatedCandidate:
    low, high = speedup * (1 - spread), speedup * (1 + spread)
    return RatedCandidate(
        candidate_id=f"c{number}", number=number, speedup=speedup, low=low, high=high, combined=combined
    )


def share(
    best: RatedCandidate, leader: RatedCandidate, *, weight: float = 1.0, reference: float | None = None
) -> WorkloadLeaders:
    return WorkloadLeaders(weight=weight, best=best, leader=leader, reference=reference)


TWO = {
    "long": share(rated(1, 2.0), rated(1, 2.0)),
    "wide": share(rated(1, 1.2), rated(2, 1.8)),
}


def state(**changes: object) -> SearchState:
    plain = SearchState(
        config=RunConfig(proposers=("synthesiser",)),
        budget=Budget(candidates=50),
        spend=Spend(candidates=20),
        judged_any=True,
        shares=TWO,
        since_best=STAGNANT_AFTER,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_each_workload_gets_the_kernel_that_wins_it() -> None:
    split = best_split(TWO)
    assert split is not None
    assert split.parents == ("c1", "c2")
    assert split.choices == {"long": 0, "wide": 1}
    assert split.key == "1,2"
    assert split.gain == pytest.approx(math.log(1.8 / 1.2) / 2)


def test_one_kernel_that_wins_everywhere_needs_no_other() -> None:
    assert (
        best_split({"long": share(rated(1, 2.0), rated(1, 2.0)), "wide": share(rated(1, 1.2), rated(1, 1.2))}) is None
    )


def test_what_may_be_luck_is_no_win() -> None:
    unsure = rated(2, 1.3, spread=0.2)
    assert best_split({**TWO, "wide": share(rated(1, 1.2), unsure)}) is None


def test_the_reference_answers_where_it_is_faster_than_every_kernel() -> None:
    split = best_split({**TWO, "wide": share(rated(1, 0.7), rated(2, 0.8), reference=1.0)})
    assert split is not None
    assert split.choices == {"long": 0, "wide": REFERENCE}
    assert split.parents == ("c1",)
    assert split.key == "1,reference"


def test_a_win_that_weighs_nothing_is_not_worth_a_dispatch() -> None:
    assert best_split({**TWO, "wide": share(rated(1, 1.2), rated(2, 1.8), weight=0.01)}) is None


def test_a_dispatch_is_improved_by_its_parts_and_never_put_into_another() -> None:
    whole = {
        "long": share(rated(3, 2.0, combined=True), rated(1, 2.01)),
        "wide": share(rated(3, 1.8, combined=True), rated(4, 2.5)),
    }
    split = best_split(whole)
    assert split is not None
    assert split.parents == ("c1", "c4")


rates = st.builds(rated, st.integers(0, 5), st.floats(0.2, 5.0), spread=st.floats(0.001, 0.3))
tables = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(share, rates, rates, weight=st.floats(0.1, 10.0), reference=st.none() | st.floats(0.1, 1.0)),
    max_size=6,
)


@given(tables)
def test_a_split_is_whole_and_promises_a_gain(found: dict[str, WorkloadLeaders]) -> None:
    split = best_split(found)
    if split is None:
        return
    assert set(split.choices) == set(found)
    assert set(split.choices.values()) - {REFERENCE} == set(range(len(split.parents)))
    assert len(set(split.choices.values())) > 1
    assert split.gain >= MIN_LOG_GAIN * (1 - 1e-9)
    assert len(split.key) <= 100
    for workload, number in split.choices.items():
        one = found[workload]
        if number == REFERENCE:
            assert one.reference is not None
            assert one.reference > max(one.best.high, one.leader.high)
        elif split.parents[number] != one.best.candidate_id:
            assert one.leader.low > one.best.high


def test_it_is_proposed_once_and_names_its_parts_by_numbers() -> None:
    found = dispatch_due(state(), last=False)
    assert found is not None
    assert found.arm == Arm(proposer=DISPATCH, operator=Operator.CROSSOVER, variant="1,2")
    assert found.parents == ("c1", "c2")
    assert found.hint == {"kernels": {"long": 0, "wide": 1}}
    settled = ArmStats(arm=found.arm, asked=1, settled=1)
    assert dispatch_due(state(arms=(settled,)), last=True) is None


def test_it_waits_while_something_faster_is_found() -> None:
    assert dispatch_due(state(since_best=STAGNANT_AFTER - 1), last=False) is None
    assert dispatch_due(state(since_best=0), last=True) is not None
    assert dispatch_due(state(since_best=0, spend=Spend(candidates=46)), last=False) is not None
    late = state(since_best=0, budget=Budget(device_s=100.0), spend=Spend(device_s=95.0), judge_s=1.0)
    assert dispatch_due(late, last=False) is not None


def test_it_does_not_wait_where_the_best_kernel_alone_cannot_be_promoted() -> None:
    losing = {**TWO, "wide": share(rated(1, 0.9), rated(2, 1.8))}
    assert dispatch_due(state(since_best=LOSING_AFTER, shares=losing), last=False) is not None
    assert dispatch_due(state(since_best=LOSING_AFTER), last=False) is None
    refused = Elite(
        candidate_id="c1", number=1, island=0, language=Language.CPP, speedup=1.5, low=1.4, confirms=1
    )  # fmt: skip
    assert dispatch_due(state(since_best=0, elites=(refused,)), last=False) is not None


def test_one_at_a_time() -> None:
    other = Arm(proposer=DISPATCH, operator=Operator.CROSSOVER, variant="5,6")
    assert dispatch_due(state(arms=(ArmStats(arm=other, asked=1, settled=0),)), last=True) is None
    assert dispatch_due(state(arms=(ArmStats(arm=other, asked=4, settled=4),)), last=True) is None


def test_the_search_proposes_it_also_when_everybody_else_has_given_all() -> None:
    config = RunConfig(proposers=("replay:two",))
    spent = ArmStats(arm=Arm(proposer="replay:two", operator=Operator.CREATE), asked=3, settled=3, exhausted=True)
    found = decide(state(config=config, arms=(spent,), since_best=0), Random(0))
    assert [d.arm.proposer for d in found if isinstance(d, Propose)] == [DISPATCH]


def test_the_search_never_goes_beyond_the_budget_for_it() -> None:
    found = decide(state(budget=Budget(candidates=20)), Random(0))
    assert not any(isinstance(d, Propose) for d in found)
