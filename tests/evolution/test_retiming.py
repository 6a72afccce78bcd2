"""Elites that a later Baseline overtook are judged again before anything new, and not confirmed before that."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from evaluator.types import Language
from evolution.confirming import SETTLED_AFTER, elite_to_confirm
from evolution.decisions import candidate_ids, describe
from evolution.search import decide
from evolution.state import Elite, SearchState
from evolution.types import Budget, Confirm, Propose, Retime, RunConfig, Spend


def elite(number: int, speedup: float, *, outdated: bool = False) -> Elite:
    return Elite(
        candidate_id=f"c{number}",
        number=number,
        island=0,
        language=Language.CPP,
        speedup=speedup,
        low=speedup * 0.99,
        outdated=outdated,
    )


STATE = SearchState(
    config=RunConfig(proposers=("synthesiser",)),
    budget=Budget(candidates=50, wall_s=100.0),
    spend=Spend(candidates=10, wall_s=20.0),
    judged_any=True,
    judge_s=5.0,
    elites=(elite(1, 1.2, outdated=True), elite(2, 1.5, outdated=True), elite(3, 0.9)),
)


def test_the_best_is_judged_again_first_and_proposals_fill_the_rest() -> None:
    decisions = decide(STATE, Random(1))
    assert decisions[:2] == [Retime(candidate_id="c2"), Retime(candidate_id="c1")]
    assert all(isinstance(decision, Propose) for decision in decisions[2:])
    assert len(decisions) == STATE.config.in_flight


def test_a_run_that_proposes_nothing_more_judges_them_again_before_it_confirms() -> None:
    over = replace(STATE, spend=replace(STATE.spend, candidates=50))
    assert decide(over, Random(1)) == [Retime(candidate_id="c2"), Retime(candidate_id="c1")]


def test_only_as_many_as_there_is_time_for() -> None:
    late = replace(STATE, spend=Spend(candidates=10, wall_s=69.0))  # a confirmation keeps 25 s, a judgement takes five
    assert [d for d in decide(late, Random(1)) if isinstance(d, Retime)] == [Retime(candidate_id="c2")]


def test_an_outdated_elite_is_confirmed_only_where_no_time_is_left() -> None:
    ripe = replace(STATE, since_best=SETTLED_AFTER)
    assert elite_to_confirm(ripe, final=False) is None
    best = elite_to_confirm(ripe, final=True)
    assert best is not None
    assert best.candidate_id == "c2"
    assert Confirm(candidate_id="c2") not in decide(ripe, Random(1))


def test_it_is_told_by_number() -> None:
    decision = Retime(candidate_id="c2")
    assert candidate_ids(decision) == ("c2",)
    assert describe([decision], {"c2": 2}) == ["retime 2"]
