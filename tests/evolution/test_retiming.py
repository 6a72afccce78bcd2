"""Elites that a later Baseline overtook are judged again before anything new, and not confirmed before that."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from evaluator.types import Language
from evolution.confirming import SETTLED_AFTER, elite_to_confirm
from evolution.decisions import candidate_ids, describe
from evolution.search import decide
from evolution.state import BestSoFar, Elite, SearchState, StandingChampion
from evolution.types import Budget, Confirm, Finish, Propose, Retime, RunConfig, Spend


def elite(number: int, speedup: float, *, outdated: bool = False, retimed: bool = False) -> Elite:
    return Elite(
        candidate_id=f"c{number}",
        number=number,
        island=0,
        language=Language.CPP,
        speedup=speedup,
        low=speedup * 0.99,
        outdated=outdated,
        retimed=retimed,
        hash=f"h{number}",
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
    assert decisions[:2] == [Retime(candidate_id="c2", first=True), Retime(candidate_id="c1")]
    assert all(isinstance(decision, Propose) for decision in decisions[2:])
    assert len(decisions) == STATE.config.in_flight


def test_a_run_that_proposes_nothing_more_judges_them_again_before_it_confirms() -> None:
    over = replace(STATE, spend=replace(STATE.spend, candidates=50))
    assert decide(over, Random(1)) == [Retime(candidate_id="c2", first=True), Retime(candidate_id="c1")]


def test_only_as_many_as_there_is_time_for() -> None:
    late = replace(STATE, spend=Spend(candidates=10, wall_s=69.0))  # a confirmation keeps 25 s, a judgement takes five
    assert retimes(late) == [Retime(candidate_id="c2", first=True)]


def test_the_best_is_judged_again_though_others_in_flight_take_the_time() -> None:
    full = replace(STATE, open_judgements=4, spend=Spend(candidates=10, wall_s=65.0))
    assert retimes(full) == [Retime(candidate_id="c2", first=True)]
    assert retimes(replace(full, spend=Spend(candidates=10, wall_s=71.0))) == [], "a confirmation would not fit"
    device = replace(full, budget=Budget(device_s=100.0), spend=Spend(device_s=65.0))
    assert retimes(device) == [Retime(candidate_id="c2", first=True)]
    under_way = replace(full, elites=(elite(3, 1.6, outdated=True, retimed=True), *full.elites))
    assert retimes(under_way) == []


def test_the_second_best_waits_its_turn() -> None:
    ahead = replace(STATE, elites=(*STATE.elites, elite(4, 1.6)))
    assert retimes(ahead) == [Retime(candidate_id="c2"), Retime(candidate_id="c1")]
    assert retimes(replace(ahead, open_judgements=12)) == []


def test_one_that_is_being_confirmed_is_not_judged_again() -> None:
    """Its confirmation times the later Baseline, too."""
    under = (replace(elite(2, 1.5, outdated=True), confirms=1), elite(1, 1.2, outdated=True))
    assert retimes(replace(STATE, elites=under, open_confirms=1)) == [Retime(candidate_id="c1")]
    assert retimes(replace(STATE, elites=under))[0] == Retime(candidate_id="c2", first=True), "it found the earlier one"


def test_one_that_is_judged_again_already_or_is_surely_slower_is_not() -> None:
    ordered = (elite(1, 0.8, outdated=True), elite(2, 1.5, outdated=True, retimed=True))
    assert retimes(replace(STATE, elites=ordered)) == []


def test_an_outdated_elite_is_confirmed_only_where_no_time_is_left() -> None:
    ripe = replace(STATE, since_best=SETTLED_AFTER)
    assert elite_to_confirm(ripe, final=False) is None
    best = elite_to_confirm(ripe, final=True)
    assert best is not None
    assert best.candidate_id == "c2"
    assert Confirm(candidate_id="c2") not in decide(ripe, Random(1))


def test_no_estimate_is_confirmed_while_it_is_being_timed_again() -> None:
    under_way = elite(2, 1.5, outdated=True, retimed=True)
    late = replace(STATE, elites=(under_way,), open_judgements=2, spend=Spend(candidates=50, wall_s=72.0))
    assert decide(late, Random(1)) == []
    given_up = replace(late, open_judgements=0)
    assert decide(given_up, Random(1)) == [Confirm(candidate_id="c2")]
    assert decide(replace(late, spend=Spend(wall_s=101.0)), Random(1)) == [Confirm(candidate_id="c2")], "it is owed"


def test_it_is_told_by_number() -> None:
    decision = Retime(candidate_id="c2")
    assert candidate_ids(decision) == ("c2",)
    assert describe([decision], {"c2": 2}) == ["retime 2"]
    assert describe([replace(decision, first=True)], {"c2": 2}) == ["retime 2 first"]


def test_what_is_timed_comes_before_estimates_and_these_before_what_is_unsure() -> None:
    unsure = replace(elite(4, 1.8), low=0.9)
    over = replace(STATE, elites=(*STATE.elites, unsure))
    assert number(elite_to_confirm(over, final=True)) == 2
    assert number(elite_to_confirm(replace(over, elites=(*over.elites, elite(5, 1.1))), final=True)) == 5
    champion = StandingChampion(candidate_id="c9", hash="h9", speedup=1.45, own=True)
    assert number(elite_to_confirm(replace(over, champion=champion), final=True)) == 2


def test_no_run_ends_without_the_confirmation_of_a_best_that_is_surely_faster_by_estimate() -> None:
    late = replace(STATE, spend=Spend(candidates=10, wall_s=101.0))
    assert decide(late, Random(1)) == [Confirm(candidate_id="c2")]


def test_what_was_timed_over_the_right_baseline_is_confirmed_where_no_time_is_left() -> None:
    """An H200's run of 60 s: 3.31x compile became 1.82x max-autotune two seconds later, and the next one has 1.93x."""
    elites = (elite(3, 1.82, outdated=True), elite(4, 1.93))
    late = replace(STATE, elites=elites, budget=Budget(wall_s=60.0), spend=Spend(candidates=4, wall_s=57.0))
    assert decide(late, Random(1)) == [Confirm(candidate_id="c4")]


def test_the_end_says_that_the_best_is_an_estimate() -> None:
    refused = replace(elite(2, 1.83, outdated=True), confirms=1)
    late = replace(
        STATE, elites=(refused,), best=BestSoFar(speedup=1.83, outdated=True),
        spend=Spend(candidates=10, wall_s=101.0), baseline="max-autotune (26 us)",
    )  # fmt: skip
    (end,) = decide(late, Random(1))
    assert isinstance(end, Finish)
    assert "The best candidate is estimated to be 1.83x as fast: it was timed against a slower baseline" in end.message
    assert end.message.endswith("Use max-autotune (26 us).")


def retimes(state: SearchState) -> list[Retime]:
    return [decision for decision in decide(state, Random(1)) if isinstance(decision, Retime)]


def number(found: Elite | None) -> int | None:
    return None if found is None else found.number
