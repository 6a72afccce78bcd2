"""A timed loop that is not ours is recognised by how rarely its process is in the interpreter."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.stages.judge import Judge
from evaluator.timing.contender import Contender
from evaluator.timing.integrity import own_loops
from evaluator.timing.integrity.own_loops import OwnLoops
from evaluator.timing.overhead import Overhead
from evaluator.timing.protocol import STANDARD, IntegrityMargins
from evaluator.types import Verdict
from tests.adversarial import suite
from tests.evaluator.timing.integrity.sessions import timed_session

PLAN = RoundPlan(calls=200)
Told = tuple[float, int, int]  # how long a round ran, looks, and how many of these were in the interpreter


def watched(told: Told) -> Round:
    ran_us, looks, interpreted = told
    seen = {"looks": looks, "interpreted": interpreted, "active_us": ran_us}
    return Round(plan=PLAN, wall_us=1.0, ran_us=ran_us, replies=[], outputs=[], diagnostics=seen)


class Stand:
    """In place of `Rounds`: every watched round of the null child is as `null` says, of others as `other`."""

    def __init__(self, null: Told, other: Told, short_us: float = 200.0) -> None:
        self._null, self._other, self._short = null, other, (short_us, 0, 0)
        self.rounds = 0

    def new_inputs(self, count: int) -> Any:
        return SimpleNamespace(count=count)

    repeated_inputs = new_inputs

    def run_null(self, inputs: Any, plan: RoundPlan, *, watch: bool = False) -> Round:
        return watched(self._null if inputs.count > 1 else self._short)

    def run(self, who: Contender, inputs: Any, plan: RoundPlan, *, watch: bool = False) -> Round:
        self.rounds += 1
        return watched(self._other)


def watch(
    null: Told,
    other: Told,
    margins: IntegrityMargins = STANDARD.integrity,
    *,
    short_us: float = 200.0,
    patient: bool = True,
) -> tuple[int, Contender]:
    """The rounds that were watched, and the contender."""
    who = Contender("candidate", SimpleNamespace(), suspect=True, buffers={})  # type: ignore[arg-type]
    rounds = Stand(null, other, short_us)
    own_loops._sample(rounds, [who], PLAN, margins, patient=patient)  # type: ignore[arg-type]
    return rounds.rounds, who


@pytest.mark.parametrize("interpreted", [1, 0])  # 0: a thread of its own makes the calls, and the first one waits
def test_a_loop_that_is_hardly_ever_in_the_interpreter_is_refused(interpreted: int) -> None:
    with pytest.raises(Rejection) as found:
        watch((1200.0, 5, 3), (700.0, 5, interpreted))
    assert (found.value.verdict, found.value.evidence["check"]) == (Verdict.REWARD_HACK, "own_loop")


def test_who_is_there_for_as_long_as_a_call_of_nothing_is_let_be_soon() -> None:
    rounds, who = watch((1200.0, 5, 3), (2400.0, 5, 2))
    assert rounds <= own_loops._FEWEST_SAMPLES
    assert (who.unchecked, who.own_loop["in_interpreter"]) == ({}, 2 * rounds)


def test_of_long_calls_nothing_can_be_told() -> None:
    """A call of nothing is in the interpreter for 3 us; of 1,000 us no number of looks that we make shows that. What
    can be gained there is less than a promotion asks for."""
    rounds, who = watch((1200.0, 5, 3), (200_000.0, 50, 0))
    assert rounds < own_loops._MOST_SAMPLES / 50
    assert who.unchecked == {}


BRIEF = IntegrityMargins(interpreter_s=0.01)


@pytest.mark.parametrize(
    ("null", "other", "why"),
    [
        ((0.0, 5, 3), (0.0, 5, 0), "the kernel does not tell how long"),
        ((1200.0, 0, 0), (700.0, 5, 0), "only 0 samples of an empty kernel"),
        ((1200.0, 5, 0), (700.0, 5, 0), "the interpreter is not recognised"),
        ((1200.0, 5, 3), (700.0, 0, 0), "only 0 of 30 samples"),
        ((1200.0, 5, 3), (4900.0, 50, 3), "more rarely in the interpreter than an empty call"),
    ],
)
def test_what_cannot_be_told_is_noted(null: Told, other: Told, why: str) -> None:
    """Such a kernel passes, but is not promoted."""
    _, who = watch(null, other, BRIEF)
    assert why in who.unchecked["own_loops"], who


def test_few_samples_are_waited_for() -> None:
    """A round without samples, as where others use the judge's core, takes no time here: thousands fit in."""
    rounds, who = watch((1200.0, 5, 3), (700.0, 0, 0), BRIEF)
    more, _ = watch((1200.0, 5, 3), (700.0, 0, 0), IntegrityMargins(interpreter_s=0.0))
    assert rounds > more
    assert who.own_loop["looks"] == 0


def test_a_search_does_not_wait_for_samples() -> None:
    waiting, _ = watch((1200.0, 5, 3), (700.0, 0, 0), BRIEF)
    rounds, who = watch((1200.0, 5, 3), (700.0, 0, 0), BRIEF, patient=False)
    assert rounds < waiting
    assert "only 0 of 30 samples" in who.unchecked["own_loops"]


class Rare(Stand):
    """In between looks a call of the candidate takes `between_us`, and one of eager 10. Where it is looked at rarely,
    the candidate is in the interpreter in every second sample, or never."""

    def __init__(self, between_us: float, *, interpreted: bool = True, busy: bool = False) -> None:
        super().__init__((1200.0, 5, 3), (2400.0, 5, 2))
        self.call_us = {"candidate": between_us, "eager": 10.0}
        self.looked = self.timed = 0
        self._interpreted, self._busy, self._random = interpreted, busy, random.Random(7)
        self.backend = SimpleNamespace(judge_has_own_core=True, run_single_calls=list)
        self.input_maker = SimpleNamespace(shuffled=list)
        self.overhead = Overhead({PLAN.executions: 0.0}, {PLAN.executions: 0.0})
        self.secret_fraction = self._random.random

    def run(
        self, who: Contender, inputs: Any, plan: RoundPlan, *, watch: bool = False, watch_at_us: float | None = None
    ) -> Round:
        if watch and watch_at_us is None:
            return super().run(who, inputs, plan, watch=True)
        if watch:
            assert who.name == "candidate"
            self.looked += 1
            return watched((2400.0, 0 if self._busy else 1, int(self._interpreted and self.looked % 2)))
        self.timed += 1
        wall_us = plan.executions * self.call_us[who.name] * (1 + 0.001 * self._random.random())
        return Round(plan=plan, wall_us=wall_us, replies=[], outputs=[])


def look_rarely(rounds: Rare, *, racing: bool = False, margins: IntegrityMargins = STANDARD.integrity) -> Contender:
    """The candidate, of 5 us a call where it is timed."""
    candidate, eager = (
        Contender(name, SimpleNamespace(), name != "eager", {}, samples={PLAN.executions: [us] * 4})  # type: ignore[arg-type]
        for name, us in (("candidate", 5.0), ("eager", 10.0))
    )
    session = timed_session(rounds, [candidate, eager], PLAN, lambda over, under: [math.log(2.0)] * 4)
    protocol = replace(STANDARD, integrity=margins)
    OwnLoops().run(replace(session, racing=racing, protocol=protocol))
    return candidate


def test_who_is_honest_after_a_look_has_the_honest_time() -> None:
    """It is as fast as eager in the rounds between looks, since it has just been looked at."""
    found = look_rarely(Rare(10.0))
    assert found.official_us() == pytest.approx(10.0 / 1.05, rel=0.01)
    assert [one.check for one in found.adjustments] == ["own_loops"]


def test_an_honest_kernel_is_as_fast_between_looks() -> None:
    rounds = Rare(5.1)
    found = look_rarely(rounds)
    assert (found.official_us(), found.unchecked, found.own_loop["taken_for_slower"]) == (5.0, {}, 1.0)
    assert rounds.looked >= own_loops._FEWEST_SAMPLES
    assert rounds.timed >= 2 * own_loops._FEWEST_TIMED


def test_who_is_found_by_rare_looks_is_refused() -> None:
    """One that takes many stops for a sign."""
    with pytest.raises(Rejection) as found:
        look_rarely(Rare(5.0, interpreted=False))
    assert found.value.evidence["check"] == "own_loop"


def test_rare_looks_that_others_prevent_are_noted_and_a_search_does_without() -> None:
    found = look_rarely(Rare(5.0, busy=True), margins=BRIEF)
    assert "samples, because others" in found.unchecked["own_loops"]
    rounds = Rare(10.0)
    assert look_rarely(rounds, racing=True).official_us() == 5.0
    assert rounds.looked == 0


def test_an_own_loop_that_answers_for_its_calls_is_not_taken_for_ours_by_chance() -> None:
    """It answers in the interpreter: a third of its time, near to the half of an empty call's that is asked for."""
    null = own_loops._Samples(rounds=10, ran_us=14_140.0, samples=100, interpreted=69, undisturbed_us=1414.0)
    empty = own_loops._Empty(null, 150.0)

    def why(samples: int, interpreted: int, round_us: float) -> str:
        found = own_loops._Samples(rounds=10, ran_us=10 * round_us, samples=samples, interpreted=interpreted)
        return found.why_unknown(empty, STANDARD.integrity)

    assert "not for certain" in why(31, 14, round_us=1300.0), "a lucky one"
    assert why(400, 180, round_us=1300.0) == "", "that many samples are no luck"
    assert "not for certain" in why(400, 140, round_us=1300.0)
    assert why(31, 15, round_us=2100.0) == "", "an honest one, which takes longer"


def test_chances_are_those_of_so_many_looks() -> None:
    seen = own_loops._Samples(rounds=1, ran_us=1.0, samples=30, interpreted=0)
    assert seen.chance(0.5) == pytest.approx(0.5**30)
    assert seen.chance(1.0) == 0.0
    assert own_loops._Samples(samples=30, interpreted=15).chance(0.5) == 1.0


@pytest.mark.soak  # where memory is slow, answering for its calls takes such a loop as long as calls take ours
def test_a_loop_in_native_code_is_found_or_in_doubt(judge: Judge) -> None:
    """Accept a judging that says why it could not tell: nobody promotes that."""
    case = next(case for case in suite.cases("cheats") if case.name == "own_loop_in_cpp")
    with suite.Court(judge) as court:
        found = court.try_case(case)
    if found.verdict is Verdict.PASSED and suite.too_busy(case, found):
        return
    assert (found.verdict, found.evidence.get("check")) == (Verdict.REWARD_HACK, "own_loop"), found.reason
