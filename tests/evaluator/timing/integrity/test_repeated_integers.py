"""A kernel that looks answers up by repeated integers is timed on integers that do not repeat."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from evaluator.devices.base import Round, RoundPlan
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.subject import Subject
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import RoundInputs
from evaluator.timing.integrity.repeated_integers import RepeatedIntegers
from evaluator.timing.overhead import Overhead
from evaluator.timing.protocol import STANDARD
from evaluator.timing.round_inputs import InputMaker
from tests.evaluator.timing.integrity.sessions import timed_session

PLAN = RoundPlan(calls=40)
DRAWABLE = 10


def contender(name: str, call_us: float) -> Contender:
    made = Contender(name, cast("Subject", None), name != "eager", {})
    made.samples = {40: [call_us] * 3, 64: [call_us] * 3}
    return made


class Stand:
    """Stands for Rounds; `drawn_us` is what a call takes by whose it is, where its integers are new."""

    def __init__(self, drawn_us: dict[str, float], *, integers_repeat: bool = True, busy_rounds: int = 0) -> None:
        self.drawn_us, self.ran = drawn_us, []  # type: ignore[var-annotated]
        self.busy_rounds = busy_rounds  # the first ones: the comparator's takes ten times as long
        self.input_maker = SimpleNamespace(integers_repeat=integers_repeat, shuffled=list)
        self.overhead = Overhead()
        self.verifier = SimpleNamespace(verify=lambda run: None)

    def drawable_calls(self, count: int) -> int:
        return min(count, DRAWABLE)

    def drawn_inputs(self, count: int) -> RoundInputs:
        return RoundInputs([()] * count, [None] * count, frozenset(), None)

    repeated_inputs = drawn_inputs

    def measure_null(self, inputs: RoundInputs, plan: RoundPlan, times: int) -> None:
        self.overhead.wall_us[plan.executions], self.overhead.idle_us[plan.executions] = 5.0, 0.0

    def run(self, who: Contender, inputs: RoundInputs, plan: RoundPlan, *, read: int = 0) -> Round:
        self.ran.append(who.name)
        call_us, waited_us = self.drawn_us[who.name], 0.0
        if who.name == "eager" and self.ran.count("eager") <= self.busy_rounds + 1:  # one prepares it
            call_us, waited_us = 10 * call_us, 9 * call_us * plan.calls
        wall_us = 5.0 + plan.calls * call_us
        return Round(plan=plan, wall_us=wall_us, waited_us=waited_us, replies=[], outputs=[])


def held(rounds: Stand, *contenders: Contender, plan: RoundPlan = PLAN) -> None:
    def log_ratios(over: str, under: str) -> list[float]:
        times = {c.name: c.official_us() for c in contenders}
        return [math.log(times[over] / times[under])] * 4

    RepeatedIntegers().run(timed_session(rounds, contenders, plan, log_ratios))


def test_what_is_found_again_is_taken_back() -> None:
    eager, cheat = contender("eager", 100.0), contender("candidate", 10.0)
    held(Stand({"eager": 100.0, "candidate": 80.0}), eager, cheat)
    assert eager.official_us() / cheat.official_us() == pytest.approx(
        1.25 * (1 + STANDARD.integrity.repeated_integers), rel=0.01
    )
    assert cheat.fresh_draws["ratio"] == pytest.approx(1.25, rel=0.01)
    assert cheat.fresh_draws["taken_for_slower"] == pytest.approx(10 / 1.375, rel=0.01)
    assert eager.fresh_draws == {}
    assert cheat.all_samples() == [10.0] * 6
    assert [one.check for one in cheat.adjustments] == ["repeated_integers"]


@pytest.mark.parametrize("busy_rounds", [3, 99])
def test_a_comparator_that_waited_for_its_core_proves_nothing(busy_rounds: int) -> None:
    eager, cheat = contender("eager", 100.0), contender("candidate", 10.0)
    held(Stand({"eager": 100.0, "candidate": 80.0}, busy_rounds=busy_rounds), eager, cheat)
    if busy_rounds == 3:
        assert cheat.fresh_draws["ratio"] == pytest.approx(1.25, rel=0.01)
        assert cheat.unchecked == {}
    else:
        assert "others used its core" in cheat.unchecked["repeated_integers"]


@pytest.mark.parametrize("drawn_us", [50.0, 54.0, 30.0])
def test_an_honest_kernel_keeps_its_times(drawn_us: float) -> None:
    eager, honest = contender("eager", 100.0), contender("candidate", 50.0)
    held(Stand({"eager": 100.0, "candidate": drawn_us}), eager, honest)
    assert honest.official_us() == 50.0
    assert honest.fresh_draws["taken_for_slower"] == 1.0


@pytest.mark.parametrize(
    "how", [{"recurs": False}, {"call_us": 95.0}, {"plan": RoundPlan(calls=40, replays=2)}, {"alone": True}]
)
def test_nobody_is_looked_at_without_need(how: dict[str, Any]) -> None:
    """Every call has a draw of its own; it is hardly faster; first replays tell; nobody is there to compare with."""
    both = [contender("eager", 100.0), contender("candidate", how.get("call_us", 50.0))]
    rounds = Stand({"eager": 100.0, "candidate": 100.0}, integers_repeat=how.get("recurs", True))
    held(rounds, *both[how.get("alone", False) :], plan=how.get("plan", PLAN))
    assert rounds.ran == []
    assert both[1].fresh_draws == {}


def test_it_is_known_whether_integers_came_again(judge: Judge) -> None:
    source = (
        "import torch\ndef reference(x):\n    return x * 2\n"
        "def get_inputs():\n    return [torch.randint(0, 10**6, (50,))]\n"
    )
    problem = read_problem(source, "unseen")
    with judge.session.references.start(problem) as child:
        made = InputMaker(Oracle(problem, child, {}, torch.Generator().manual_seed(3)))
        made._draw_s = 1e-5
        made.calls(8, {})
        assert not made.integers_repeat
        made._draw_s = 10.0
        made.calls(8, {})
        assert made.integers_repeat
        calls, _ = made.calls(8, {}, math.inf)
    assert len({tuple(sorted(x.tolist())) for (x,) in calls}) > 6  # a twin has its neighbour's
