"""The bandit prefers the model with the highest gain for its cost, over all Operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from evolution import bandit
from evolution.arms import TUNER, arms_of, way_of
from evolution.state import ArmStats
from evolution.types import SLOTS, Arm, Operator


def arm(model: str, operator: Operator = Operator.CREATE, **counts: float) -> ArmStats:
    return ArmStats(arm=Arm(proposer=model, operator=operator), **counts)  # type: ignore[arg-type]


def judged(model: str, operator: Operator, passed: int, of: int, **more: float) -> ArmStats:
    """Asks that were all judged, a second of the device each."""
    counts = {"asked": of, "settled": of, "candidates": of, "judged": of, "passed": passed}
    return arm(model, operator, **(counts | {"reward": 0.05 * passed, "device_s": of} | more))


def asked(arms: list[ArmStats], times: int = 400) -> Counter[str]:
    """Count the models that are asked, over many seeds."""
    return Counter(arms[bandit.choose(arms, {}, Random(seed))].arm.proposer for seed in range(times))


def test_what_a_model_did_with_one_operator_counts_for_the_others() -> None:
    arms = [
        judged("able", Operator.CREATE, 18, 20), judged("poor", Operator.CREATE, 1, 20),
        arm("able", Operator.DIFF), arm("poor", Operator.DIFF),
    ]  # fmt: skip
    diffs = Counter(bandit.choose_model(arms, [2, 3], {}, Random(seed)) for seed in range(400))
    assert diffs[2] > 390, "no model was asked for a diff yet"
    assert asked(arms)["able"] > 390


def test_the_dearer_of_two_that_are_as_good_is_seldom_asked() -> None:
    """A thirtieth of a dollar counts as twenty seconds."""
    dear = judged("dear", Operator.CREATE, 10, 20, usd=20 / 30)
    cheap = judged("cheap", Operator.CREATE, 10, 20)
    assert asked([dear, cheap])["cheap"] > 390


def test_the_dear_one_is_asked_where_the_cheap_one_is_worth_nothing() -> None:
    dear = judged("dear", Operator.CREATE, 15, 20, usd=0.1)
    cheap = judged("cheap", Operator.CREATE, 0, 60)
    assert asked([dear, cheap])["dear"] > 390


def test_kernels_that_pass_and_gain_nothing_are_of_less_use() -> None:
    gaining = judged("gaining", Operator.CREATE, 10, 20, reward=5.0)
    passing = judged("passing", Operator.CREATE, 20, 20, reward=0.05 * 20)
    assert asked([gaining, passing])["gaining"] > 390


def test_a_model_that_was_never_asked_comes_first_and_but_once() -> None:
    arms = [judged("known", Operator.CREATE, 15, 20), arm("new"), arm("new", Operator.REWRITE)]
    assert bandit.choose_model(arms, [0, 1], {}, Random(0)) == 1
    under_way = sum(bandit.choose_model(arms, [0, 1], {2: 1}, Random(seed)) == 1 for seed in range(400))
    assert 0 < under_way < 400, "an ask that was just decided counts, whatever it is for"


def test_what_costs_nothing_and_gives_nothing_is_not_asked_for_ever() -> None:
    """Free, at once, and never of use: an ask of it costs what a judgement does, all the same."""
    able = judged("able", Operator.CREATE, 10, 20, usd=0.1)
    empty = arm("empty", asked=40, settled=40)
    assert asked([able, empty])["able"] > 250


def test_a_judgement_that_is_not_known_yet_is_no_failure() -> None:
    steady = judged("steady", Operator.CREATE, 5, 10)
    poor = judged("busy", Operator.CREATE, 5, 20)
    busy = judged("busy", Operator.CREATE, 5, 20, judged=10, device_s=20.0)
    assert asked([poor, steady])["busy"] < 60
    assert 150 < asked([busy, steady])["busy"] < 250


def test_free_arms_are_each_their_own() -> None:
    """The tuner and the synthesiser are no models: nothing of theirs is put together."""
    synthesiser = arm("synthesiser", asked=20, settled=20, candidates=20, judged=20, passed=20, reward=20, device_s=20)
    tuner = ArmStats(arm=TUNER, asked=20, settled=20, judged=20, device_s=20)
    arms = [synthesiser, tuner, judged("a", Operator.CREATE, 0, 20), judged("b", Operator.CREATE, 0, 20)]
    assert asked(arms)["synthesiser"] == 400


def test_a_model_may_write_in_three_ways_where_there_are_blocks() -> None:
    ways = {way_of(one) for one in arms_of(("model",), slots=True)} - {""}
    assert ways == {"slots", "edits", "file"}
    assert {way_of(one) for one in arms_of(("model",))} - {""} == {"edits", "file"}
    assert not any(one.variant == SLOTS for one in arms_of(("synthesiser",), slots=True))
    assert way_of(TUNER) == way_of(Arm(proposer="synthesiser", operator=Operator.CREATE)) == ""


def test_the_way_with_the_greater_reward_for_its_cost_is_asked_more() -> None:
    """The slots of a block are a third of a file's tokens, and gain as much."""
    file = judged("one", Operator.CREATE, 20, 40, usd=40 * 0.03, reward=8.0)
    short = replace(file, usd=40 * 0.01, arm=replace(file.arm, variant=SLOTS))
    chosen = Counter(bandit.choose([file, short], {}, Random(seed)) for seed in range(100))
    assert chosen[1] == 100
