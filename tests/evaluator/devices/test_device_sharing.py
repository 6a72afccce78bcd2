"""Two judges on one device: who has it when, and that nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.devices.device_lock import device_lock
from evaluator.devices.device_sharing import DeviceSharing
from evaluator.stages.judge import Judge
from evaluator.types import DeviceKind

SOON_S = 60


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_LOCK_DIR", str(tmp_path))


class Device:
    """A stand-in for a device: `finished` counts how often somebody waited for it."""

    def __init__(self, kind: DeviceKind = DeviceKind.CUDA) -> None:
        self.kind, self.finished = kind, 0

    def describe(self) -> Any:
        return SimpleNamespace(uuid="GPU-0")

    def synchronize(self) -> None:
        self.finished += 1


def sharing(kind: DeviceKind = DeviceKind.CUDA) -> tuple[DeviceSharing, Device]:
    device = Device(kind)
    return DeviceSharing(device), device  # type: ignore[arg-type]


def wait_until(true: Callable[[], bool]) -> None:
    """Ask again and again; the test's own limit ends it."""
    while not true():
        pass


def test_a_check_lets_another_judge_time_something_between_two_requests() -> None:
    (one, device), (other, _) = sharing(), sharing()
    begun = threading.Event()
    order: list[str] = []

    def time_something() -> None:
        begun.set()
        with other.exclusive():
            order.append("timed")

    with ThreadPoolExecutor(1) as thread:
        with one.shared():
            one.yield_to_waiters()
            assert device.finished == 0, "nobody waits"
            timed = thread.submit(time_something)
            assert begun.wait(SOON_S)
            wait_until(one._hold.is_awaited)
            order.append("asked")
            one.yield_to_waiters()
            order.append("asked again")
        timed.result(SOON_S)
    assert order == ["asked", "timed", "asked again"]
    assert device.finished == 1, "what the judge itself had asked of the device was done before it let go"


def test_what_is_timed_is_timed_alone_and_others_check_beside_what_is_not() -> None:
    (one, _), (other, _) = sharing(), sharing()
    order: list[str] = []
    checked = threading.Event()

    def check() -> None:
        with other.shared():
            order.append("check")
            checked.set()

    with ThreadPoolExecutor(1) as thread, one.exclusive():
        checking = thread.submit(check)
        one.yield_to_waiters()  # who has it alone does not
        assert not checked.is_set()
        order.append("timed")
        with one.released():
            assert checked.wait(SOON_S)
        checking.result(SOON_S)
        with pytest.raises(Exception, match="held"), device_lock("GPU-0", exclusive=False, timeout_s=0.01):
            pass
    assert order == ["timed", "check"]


def test_two_judges_that_time_take_turns() -> None:
    (one, _), (other, _) = sharing(), sharing()
    meeting = threading.Barrier(2, timeout=SOON_S)
    timing: list[DeviceSharing] = []
    most = 0

    def time_pairs(mine: DeviceSharing) -> None:
        nonlocal most
        meeting.wait()
        with mine.exclusive():
            for _ in range(20):
                timing.append(mine)
                most = max(most, len(timing))
                timing.remove(mine)
                with mine.released():
                    mine.yield_to_waiters()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(time_pairs, mine) for mine in (one, other)]:
            done.result(SOON_S)
    assert most == 1


def test_only_the_thread_that_holds_the_device_gives_way() -> None:
    (one, device), (other, _) = sharing(), sharing()
    with ThreadPoolExecutor(2) as threads, one.shared():

        def time_something() -> None:
            with other.exclusive():
                pass

        timed = threads.submit(time_something)
        wait_until(one._hold.is_awaited)
        threads.submit(one.yield_to_waiters).result(SOON_S)
        assert device.finished == 0
        assert not timed.done()
        one.yield_to_waiters()
        timed.result(SOON_S)


def test_a_cpu_is_not_shared_while_something_is_timed_on_it() -> None:
    (one, device), (other, _) = sharing(DeviceKind.CPU), sharing(DeviceKind.CPU)
    begun = threading.Event()

    def check() -> None:
        begun.set()
        with other.shared():
            pass

    with ThreadPoolExecutor(1) as thread:
        with one.exclusive():
            checking = thread.submit(check)
            assert begun.wait(SOON_S)
            with one.released():
                assert not checking.done()
                assert device.finished == 0
        checking.result(SOON_S)


def test_without_a_hold_there_is_nothing_to_give() -> None:
    one, device = sharing()
    one.yield_to_waiters()
    with one.released():
        pass
    assert device.finished == 0


def test_nothing_of_a_judges_runs_while_others_have_the_device(judge: Judge) -> None:
    """A Candidate's child stands still while its judge waits, and goes on afterwards."""
    session = judge.session
    ours, other = DeviceSharing(Device(), session._candidates_frozen), sharing()[0]  # type: ignore[arg-type]
    begun = threading.Event()
    seen: list[bool] = []
    with session.children.start(session.pools.for_candidate(None), "class ModelNew: pass", "candidate") as subject:
        session.freeze_while_waiting(subject)

        def time_something() -> None:
            begun.set()
            with other.exclusive():
                wait_until(lambda: not subject.child.runs)
                seen.append(subject.child.runs)

        with ThreadPoolExecutor(1) as thread, ours.shared():
            ours.yield_to_waiters()
            assert subject.child.runs, "nobody waits"
            timed = thread.submit(time_something)
            assert begun.wait(SOON_S)
            wait_until(ours._hold.is_awaited)
            ours.yield_to_waiters()
            assert subject.child.runs
            timed.result(SOON_S)
        assert seen == [False]
        assert subject.child.request("ping", timeout_s=60.0)
