"""The overhead of rounds, and the part of it that is taken off."""

from __future__ import annotations

from typing import cast

import pytest

from evaluator.devices.base import Round, RoundPlan
from evaluator.subject import Subject
from evaluator.timing.contender import Contender
from evaluator.timing.overhead import ClockRule, Overhead
from evaluator.timing.protocol import STANDARD

CAPPED, WHOLE = ClockRule(STANDARD.overhead_share), ClockRule(STANDARD.plain_overhead_share)
BY_DEVICE = ClockRule(STANDARD.plain_overhead_share, STANDARD.device_slack)


def a_round(wall_us: float, *, calls: int = 10, **more: float) -> Round:
    return Round(plan=RoundPlan(calls=calls), wall_us=wall_us, replies=[], outputs=[], **more)


def measured(*rounds: Round) -> Overhead:
    made = Overhead()
    for done in rounds:
        made.note(done, done.plan.executions)
    return made


def test_what_nobody_can_save_is_taken_off_whole() -> None:
    """400 us of stopping and waking, 100 us in the child: a tenth of the rest is more than that."""
    overhead = measured(a_round(500.0, ran_us=100.0))
    assert overhead.call_us(a_round(10_500.0), CAPPED) == pytest.approx(1000.0)


@pytest.mark.parametrize(("rule", "call_us"), [(CAPPED, 0.9 * 5.66), (WHOLE, 2.66)])
def test_of_what_runs_in_the_child_a_tenth_is_taken_off_unless_nobody_can_reach_it(rule, call_us) -> None:
    overhead = measured(a_round(10 * 3.0))
    assert overhead.call_us(a_round(10 * 5.66), rule) == pytest.approx(call_us)


def test_the_least_round_counts_and_waiting_for_the_core_is_no_idle_time() -> None:
    overhead = measured(
        a_round(900.0, ran_us=100.0, waited_us=400.0), a_round(600.0, ran_us=150.0), a_round(550.0, ran_us=50.0)
    )
    assert overhead.wall_us == {10: 550.0}
    assert overhead.idle_us == {10: 400.0}
    assert overhead.harness_us(10) == pytest.approx(150.0)


def test_a_time_is_positive_even_where_the_null_child_was_slower() -> None:
    overhead = measured(a_round(1000.0, ran_us=100.0))
    assert overhead.call_us(a_round(300.0), WHOLE) > 0


def test_an_empty_call_takes_what_its_own_round_would_give() -> None:
    null = a_round(500.0, ran_us=100.0)
    overhead = measured(null)
    assert overhead.empty_call_us(10, CAPPED.share) == pytest.approx(overhead.call_us(null, CAPPED))


def test_the_device_s_clock_counts_where_the_harness_cannot_be_reached() -> None:
    """A round costs this child 300 us more beside its device time than the null child: no part of its calls."""
    overhead = measured(a_round(1200.0, device_us=200.0), a_round(1500.0, device_us=190.0))
    done = a_round(7500.0, device_us=6190.0)
    assert overhead.call_us(done, BY_DEVICE) == pytest.approx(600.0)
    assert overhead.call_us(done, WHOLE) == pytest.approx(630.0)


def test_a_device_s_clock_that_the_wall_clock_does_not_bear_out_counts_for_little() -> None:
    overhead = measured(a_round(1200.0, device_us=200.0))
    assert overhead.call_us(a_round(7200.0, device_us=300.0), BY_DEVICE) == pytest.approx((6000.0 - 2 * 1000.0) / 10)


def test_a_device_without_a_clock_is_timed_on_the_wall() -> None:
    overhead = measured(a_round(1200.0))
    assert overhead.call_us(a_round(7200.0), BY_DEVICE) == pytest.approx(600.0)


@pytest.mark.parametrize(("plain", "rule"), [((True, True), BY_DEVICE), ((True, False), CAPPED), ((), BY_DEVICE)])
def test_one_rule_for_all_contenders_of_a_session(plain, rule) -> None:
    made = [Contender(str(n), cast("Subject", None), True, {}, plain=one) for n, one in enumerate(plain)]
    made.append(Contender("eager", cast("Subject", None), False, {}))
    assert ClockRule.of(made, STANDARD) == rule
