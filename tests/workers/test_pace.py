"""Rate limits, rests and the breaker, by a clock of their own."""

from __future__ import annotations

import pytest

from workers.models.breaker import FAILURES, Breaker
from workers.models.pace import BURST_S, Pace


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_requests_a_minute_are_kept_after_a_burst() -> None:
    clock = Clock()
    pace = Pace(30.0, None, clock=clock)
    begun: list[float] = []
    for _ in range(300):
        if not pace.wait_s():
            pace.begin()
            begun.append(clock.now)
        clock.now += max(0.01, pace.wait_s())
    long = [t for t in begun if t < begun[0] + 120.0]
    assert len(long) <= 30 * 2 + 30 * BURST_S / 60.0 + 1
    assert len(long) >= 60
    assert len([t for t in begun if t < begun[0] + 1.0]) == 5


def test_one_request_a_minute_is_one() -> None:
    clock = Clock()
    pace = Pace(1.0, None, clock=clock)
    assert pace.wait_s() == 0.0
    pace.begin()
    assert pace.wait_s() == pytest.approx(60.0)


def test_tokens_a_minute_are_kept() -> None:
    clock = Clock()
    pace = Pace(None, 6000.0, clock=clock)
    pace.used(500)
    assert pace.wait_s() == 0.0
    pace.used(3000)
    assert pace.wait_s() == pytest.approx(35.0 - BURST_S)


def test_a_rest_holds_for_all_and_is_never_shortened() -> None:
    clock = Clock()
    pace = Pace(None, None, clock=clock)
    pace.rest(5.0)
    pace.rest(1.0)
    assert pace.wait_s() == pytest.approx(5.0)
    clock.now += 5.0
    assert pace.wait_s() == 0.0


def test_an_open_breaker_lets_one_through_when_its_time_is_up() -> None:
    clock = Clock()
    breaker = Breaker(open_s=30.0, clock=clock)
    for _ in range(FAILURES):
        assert breaker.allows()
        breaker.failed()
    assert not breaker.allows()
    assert breaker.wait_s() == pytest.approx(30.0)
    clock.now += 30.0
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.succeeded()
    assert breaker.wait_s() == 0.0
    assert breaker.allows()
