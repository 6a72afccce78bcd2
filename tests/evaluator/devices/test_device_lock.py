"""Holding a device: shared or alone, in turn, and knowing who waits."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.devices.device_lock import device_lock
from evaluator.errors import LockTimeout
from evaluator.stages.stage_clock import StageClock
from evaluator.types import Stage

WAIT_S = 0.2


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_LOCK_DIR", str(tmp_path))


def test_many_share_a_device_and_one_has_it_alone() -> None:
    with (
        device_lock("a", exclusive=False, timeout_s=60),
        device_lock("b", exclusive=True, timeout_s=60),
        ThreadPoolExecutor(1) as other,
    ):
        other.submit(_take, "a", exclusive=False).result(60)
        with pytest.raises(LockTimeout, match="held by another user"):
            other.submit(_take, "a", exclusive=True).result(60)
        with pytest.raises(LockTimeout):
            other.submit(_take, "b", exclusive=False).result(60)
    _take("a", exclusive=True)


def _take(key: str, *, exclusive: bool) -> None:
    with device_lock(key, exclusive=exclusive, timeout_s=0.05):
        pass


def test_who_shares_a_device_learns_that_somebody_waits_and_those_who_come_later_wait_too() -> None:
    order: list[str] = []
    alone, later = threading.Event(), threading.Event()

    def have_alone() -> None:
        with device_lock("a", exclusive=True, timeout_s=60):
            order.append("alone")
            alone.set()
            assert later.wait(60)

    def share_later() -> None:
        with device_lock("a", exclusive=False, timeout_s=60):
            order.append("later")

    with ThreadPoolExecutor(2) as others:
        with device_lock("a", exclusive=False, timeout_s=60) as hold:
            assert not hold.is_awaited()
            found = [others.submit(have_alone)]
            while not hold.is_awaited():
                assert not found[0].done()
            found.append(others.submit(share_later))
            assert not alone.is_set()
            assert order == []
        assert alone.wait(60)
        later.set()
        for one in found:
            one.result(60)
    assert order == ["alone", "later"]


def test_waiting_for_a_device_is_no_part_of_a_stage() -> None:
    clock, began = StageClock(), time.perf_counter()
    with device_lock("a", exclusive=True, timeout_s=60), ThreadPoolExecutor(1) as other:
        waited = other.submit(_waits, clock)
        with pytest.raises(LockTimeout):
            waited.result(60)
    assert clock.duration_s[str(Stage.TIMING)] <= time.perf_counter() - began - WAIT_S + 0.001  # which is rounded


def _waits(clock: StageClock) -> None:
    with clock.during(Stage.TIMING), device_lock("a", exclusive=True, timeout_s=WAIT_S):
        pass
