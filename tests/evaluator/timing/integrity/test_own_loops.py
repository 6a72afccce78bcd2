"""A timed loop that is not ours is recognised by how rarely its process is in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.stages.judge import Judge
from evaluator.timing.contender import Contender
from evaluator.timing.integrity import own_loops
from evaluator.timing.protocol import STANDARD, IntegrityMargins
from evaluator.types import Verdict
from tests.adversarial import suite

PLAN = RoundPlan(calls=200)
Told = tuple[float, int, int]  # how long a round ran, looks, and how many of these were in the interpreter


def watched(told: Told) -> Round:
    ran_us, looks, interpreted = told
    seen = {"looks": looks, "interpreted": interpreted}
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


def refused(null: Told, other: Told, margins: IntegrityMargins = STANDARD.integrity) -> Callable[[], int]:
    who = Contender("candidate", SimpleNamespace(), suspect=True, buffers={})  # type: ignore[arg-type]
    rounds = Stand(null, other)

    def run() -> int:
        own_loops._sample(rounds, [who], PLAN, margins)  # type: ignore[arg-type]
        return rounds.rounds

    return run


def test_a_loop_that_is_hardly_ever_in_the_interpreter_is_refused() -> None:
    with pytest.raises(Rejection) as found:
        refused((1200.0, 5, 3), (700.0, 5, 1))()
    assert (found.value.verdict, found.value.evidence["check"]) == (Verdict.REWARD_HACK, "own_loop")


def test_who_is_there_for_as_long_as_a_call_of_nothing_is_let_be_soon() -> None:
    assert refused((1200.0, 5, 3), (2400.0, 5, 2))() <= own_loops._FEWEST_SAMPLES


def test_of_long_calls_nothing_can_be_told() -> None:
    """A call of nothing is in the interpreter for 3 us; of 1,000 us no number of looks that we make shows that."""
    assert refused((1200.0, 5, 3), (200_000.0, 50, 0))() == own_loops._MOST_SAMPLES / 50


@pytest.mark.parametrize("null", [(0.0, 5, 3), (1200.0, 0, 0)])
def test_where_the_kernel_does_not_say_nobody_is_refused(null: Told) -> None:
    refused(null, (0.0 if not null[0] else 700.0, 5, 0), IntegrityMargins(interpreter_s=0.1))()


def test_chances_are_those_of_so_many_looks() -> None:
    seen = own_loops._Samples(rounds=1, ran_us=1.0, samples=30, interpreted=0)
    assert seen.chance(0.5) == pytest.approx(0.5**30)
    assert seen.chance(1.0) == 0.0
    assert own_loops._Samples(samples=30, interpreted=15).chance(0.5) == 1.0


@pytest.mark.clock  # where others use its core, the samples are too few to be sure
def test_a_loop_in_native_code_is_found_by_the_judge(judge: Judge) -> None:
    case = next(case for case in suite.cases("cheats") if case.name == "own_loop_in_cpp")
    with suite.Court(judge) as court:
        found = court.try_case(case)
    assert (found.verdict, found.evidence.get("check")) == (Verdict.REWARD_HACK, "own_loop"), found.reason
