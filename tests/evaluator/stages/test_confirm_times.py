"""The repetitions of a confirmation: what one close look adds to all, and the processes that serve them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.device_session import DeviceSession
from evaluator.errors import Rejection
from evaluator.stages.candidate_children import CandidateChildren
from evaluator.stages.confirm_times import RepeatedTimes
from evaluator.stages.fresh_processes import EAGER, FreshProcesses
from evaluator.timing.protocol import Promotion
from evaluator.types import (
    Adjustment,
    Candidate,
    DeviceKind,
    Language,
    Measurement,
    Problem,
    Stage,
    Verdict,
    Workload,
)
from tests.evaluator.rooms import problem

CANDIDATE = Candidate(source="x", language=Language.TORCH)


def test_what_a_close_look_adds_counts_in_every_repetition() -> None:
    times = RepeatedTimes(Workload(name="a"), looked_at=1)
    double = math.log(2)
    # The second repetition was slowed by half already: its ratios and times say so.
    times.log_ratios = {"eager": [double, double - math.log(1.5)], "champion": [0.0, -math.log(1.5) + math.log(1.1)]}
    times.rounds = {"candidate": [10.0, 15.0], "eager": [20.0, 20.0], "champion": [10.0, 11.0]}
    times.slower = {"candidate": 1.5, "champion": 1.1, "eager": 1.0}
    times.spread_adjustments()
    assert times.log_ratios["eager"] == pytest.approx([double - math.log(1.5)] * 2)
    assert times.log_ratios["champion"] == pytest.approx([math.log(1.1 / 1.5)] * 2)
    assert times.rounds["candidate"] == pytest.approx([15.0, 15.0])
    assert times.rounds["eager"] == [20.0, 20.0]
    assert times.fastest == "eager"


def test_baselines_that_were_faster_before_lower_the_claims_over_them() -> None:
    times = RepeatedTimes(Workload(name="a"))
    times.rounds = {"candidate": [5.0, 5.0], "eager": [30.0, 30.0], "compile": [20.0, 20.0], "champion": [6.0, 6.0]}
    times.log_ratios = {"eager": [math.log(6)] * 2, "compile": [math.log(4)] * 2, "champion": [math.log(1.2)] * 2}
    times.measurements = [cast(Measurement, SimpleNamespace(diagnostics={"device_clock": True}))]
    told = times.heed_known({"eager": 30.0, "compile": 10.0, "other": 1.0})
    assert told == {"compile": {"here_us": 20.0, "counted_us": 10.0}}
    assert times.log_ratios["compile"] == pytest.approx([math.log(2)] * 2)
    assert times.rounds["compile"] == [10.0, 10.0]
    assert (times.log_ratios["eager"], times.log_ratios["champion"]) == ([math.log(6)] * 2, [math.log(1.2)] * 2)
    assert times.fastest == "compile"


def looked_at(unchecked: dict[str, str], factor: float) -> Any:
    """A Bench whose integrity checks slowed the Candidate so much, or could not look."""
    slowed = (Adjustment(check="single_calls", factor=factor),) if factor > 1 else ()
    one = SimpleNamespace(name="candidate", adjustments=slowed, unchecked=unchecked)
    return SimpleNamespace(contenders=[one])


def test_a_later_look_adds_what_it_finds_beyond_the_first() -> None:
    times = RepeatedTimes(Workload(name="a"), looked_at=0)
    times.log_ratios, times.rounds = {"eager": [0.0, 0.0]}, {"candidate": [10.0, 10.0], "eager": [10.0, 10.0]}
    times.note_close_look(looked_at({"own_loops": "too few"}, 1.2))
    times.spread_adjustments()
    assert (times.rounds["candidate"], times.unchecked) == ([10.0, 12.0], {"own_loops": "too few"})
    times.note_further_look(looked_at({"own_loops": "too few"}, 1.1))
    assert times.rounds["candidate"] == [10.0, 12.0], "less than before"
    times.note_further_look(looked_at({}, 1.5))
    assert times.rounds["candidate"] == pytest.approx([12.5, 15.0])
    assert times.log_ratios["eager"] == pytest.approx([-math.log(1.25), -math.log(1.5)])
    assert (times.unchecked, times.looked_at) == ({}, 0)


def test_it_is_unclear_while_the_interval_holds_as_fast_and_slower() -> None:
    times = RepeatedTimes(Workload(name="a", held_out=True))
    for logs, unclear in (([-0.5, -0.4], True), ([0.1, 0.3], False), ([-0.1, -0.101] * 4, False)):
        times.log_ratios = {"eager": logs}
        assert times.is_unclear(Promotion()) is unclear, logs


def test_without_a_close_look_nothing_is_added() -> None:
    times = RepeatedTimes(Workload(name="a", held_out=True))
    times.log_ratios, times.rounds = {"eager": [0.5, 0.6]}, {"candidate": [1.0, 1.0], "eager": [2.0, 2.0]}
    times.spread_adjustments()
    assert times.log_ratios == {"eager": [0.5, 0.6]}


class Child:
    """A started child that notes what is done to it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log, self.child = name, log, self

    def freeze(self) -> None:
        self._log.append(f"stop {self.name}")

    def drop_module(self) -> None:
        self._log.append(f"drop {self.name}")


class Device:
    """A session and its starter of children, on a device with so much free memory. The n-th Candidate may fail."""

    def __init__(self, kind: DeviceKind, free_bytes: int | None, fails: int | None = None) -> None:
        self.log: list[str] = []
        self.started = self.ended = self.held = self._candidates = 0
        self._lock, self._fails = threading.Lock(), fails
        self.backend = SimpleNamespace(kind=kind, free_bytes=lambda: free_bytes)
        self.sharing = SimpleNamespace(in_background=self._hold)
        self.references = SimpleNamespace(start=lambda _: self._start("reference"))
        self.children = SimpleNamespace(end=self._end)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        with self._lock:
            self.held += 1
        yield

    def start(self, candidate: Candidate, stage: Stage) -> Child:
        return self._start("candidate")

    def _start(self, name: str) -> Child:
        with self._lock:
            self.started += 1
            self._candidates += name == "candidate"
            if name == "candidate" and self._candidates == self._fails:
                raise Rejection(Verdict.RUNTIME_ERROR, Stage.CONFIRM, "it does not load")
        return Child(name, self.log)

    def _end(self, child: Child) -> None:
        self.ended += 1

    def processes(self, sets: int, *, eager_sets: int) -> FreshProcesses:
        suspects = {"candidate": CANDIDATE, "again": CANDIDATE}
        one: Problem = problem()
        session, children = cast(DeviceSession, self), cast(CandidateChildren, self)
        return FreshProcesses(session, children, one, suspects, sets, eager_sets=eager_sets)


def serve(processes: FreshProcesses, turns: int) -> list[Any]:
    seen = []
    for turn in range(turns):
        with processes.turn(turn, eager=True) as subjects:
            assert list(subjects) == ["candidate", "again", EAGER]
            seen.append(tuple(map(id, subjects.values())))
    return seen


def test_on_a_gpu_all_sets_start_together_and_serve_every_workload() -> None:
    device = Device(DeviceKind.CUDA, 80 << 30)
    with device.processes(8, eager_sets=8) as processes:
        processes.begin()
        processes.begin()
        processes.wait()
        assert (device.started, device.held) == (17, 17), "once, each while the device is shared"
        assert device.log.count("stop candidate") == 9, "candidates lie stopped until their turn"
        assert serve(processes, 8) == serve(processes, 8), "the next workload gets the same ones"
        processes.rest()
        assert device.log.count("drop candidate") == 18, "each once for a workload"
        assert device.ended == 0
    assert device.ended == 17


@pytest.mark.parametrize(("kind", "free_bytes"), [(DeviceKind.CPU, None), (DeviceKind.CUDA, 80 << 30)])
def test_the_candidate_of_a_turn_serves_once_more_in_the_next_one(kind: DeviceKind, free_bytes: int | None) -> None:
    device = Device(kind, free_bytes)
    with device.processes(4, eager_sets=4) as processes:
        processes.begin()
        processes.wait()
        turns = serve(processes, 4)
        assert [again for _, again, _ in turns[1:]] == [candidate for candidate, _, _ in turns[:-1]]
        assert len({candidate for candidate, _, _ in turns} | {turns[0][1]}) == 5
        gone = device.log.count("drop candidate") + device.ended
        processes.rest()
        processes.rest()
        assert device.log.count("drop candidate") + device.ended == gone + 1, "the last one, too, goes, and goes once"


def test_eager_is_begun_where_it_is_likely_to_be_timed_and_elsewhere_on_demand() -> None:
    device = Device(DeviceKind.CUDA, 80 << 30)
    with device.processes(8, eager_sets=4) as processes:
        processes.begin()
        processes.wait()
        assert device.started == 13
        with processes.turn(7, eager=False) as subjects:
            assert list(subjects) == ["candidate"], "no turn was before"
        assert (serve(processes, 8), device.started) == (serve(processes, 8), 17)
    assert device.ended == 17
    device = Device(DeviceKind.CPU, None)
    with device.processes(8, eager_sets=8) as processes, processes.turn(0, eager=False):
        assert device.started == 2


@pytest.mark.parametrize(("kind", "free_bytes"), [(DeviceKind.CPU, None), (DeviceKind.CUDA, 8 << 30)])
def test_elsewhere_each_turn_starts_its_own(kind: DeviceKind, free_bytes: int | None) -> None:
    device = Device(kind, free_bytes)
    with device.processes(8, eager_sets=8) as processes:
        processes.begin()
        processes.wait()
        assert device.started == 0
        serve(processes, 3)
        assert (device.started, device.ended, device.held) == (7, 6, 0)
    assert device.ended == 7


@pytest.mark.parametrize("kind", [DeviceKind.CPU, DeviceKind.CUDA])
def test_what_did_start_is_ended_where_one_does_not(kind: DeviceKind) -> None:
    device = Device(kind, 80 << 30, fails=2)
    with device.processes(2, eager_sets=2) as processes:
        processes.begin()
        with pytest.raises(Rejection, match="does not load"):
            serve(processes, 2)
    assert device.ended == device.started - 1 > 1
