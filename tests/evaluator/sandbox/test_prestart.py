"""Prestarted children are taken, replaced, and never left behind. The tests use a CPU, where a judge keeps none."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.cage.policy import CagePolicy, StartMode
from evaluator.devices.device_lock import DeviceHold, device_lock
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import HoldDevice, PrestartPool, _provide
from evaluator.sandbox.process import ChildProcess, PendingRequest
from evaluator.sandbox.setup import send_setup
from evaluator.serve import make_backend
from evaluator.stages.judge import Judge
from evaluator.subject import Subject
from evaluator.types import DeviceKind, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, problem

WAITS = """
import os, time

while not os.path.exists("/job/go"):
    time.sleep(0.01)
"""


@pytest.fixture
def pool(judge: Judge) -> ChildPool:
    one = judge.session.pools.plain()
    if not one._level.nested:
        pytest.skip("this machine cannot start children before their files are known")
    return one


@pytest.fixture
def spares(pool: ChildPool) -> Iterator[PrestartPool]:
    one = PrestartPool(lambda: pool, lambda child: send_setup(child, "cpu", 1), 2)
    yield one
    one.close()


def pids(spares: PrestartPool) -> list[int]:
    return [child.pid for child in spares._children]


def test_a_prestarted_child_serves_like_a_new_one(pool: ChildPool, spares: PrestartPool) -> None:
    assert spares.take("nobody", {}) is None
    spares.fill()
    waiting = pids(spares)
    assert len(waiting) == 2
    backend = make_backend("cpu")
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    pass\n"
    with Subject.start(
        pool, backend, source, "candidate", files={"native/x.so": b"x" * 70000}, prestarted=spares
    ) as one:
        assert one.child.pid in waiting
        assert one.child.name == "candidate"
        assert pids(spares) == [pid for pid in waiting if pid != one.child.pid]
        folder = Path(f"/proc/{one.child.pid}/root/job")
        assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*")) == ["candidate.py", "native/x.so"]
        assert (folder / "native/x.so").read_bytes() == b"x" * 70000
        other = Path(f"/proc/{pids(spares)[0]}/root/job")
        assert list(other.iterdir()) == []  # nobody else sees them
    spares.fill()
    assert len(pids(spares)) == 2
    with pytest.raises(ValueError, match="not a relative path"):
        spares.take("candidate", {"../x": b""})


def test_a_dead_prestarted_child_is_skipped(spares: PrestartPool) -> None:
    spares.fill()
    first, second = pids(spares)
    os.kill(second, signal.SIGKILL)  # the one that would be taken first
    child = spares.take("candidate", {})
    assert child is not None
    assert child.pid == first
    child.close()
    assert spares.take("candidate", {}) is None


def test_waiting_children_end_with_their_pool(spares: PrestartPool) -> None:
    spares.fill()
    waiting = pids(spares)
    spares.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in waiting)
    spares.fill()
    assert pids(spares) == []


def test_single_cages_have_no_prestarted_children() -> None:
    policy = CagePolicy(preload=("evaluator.child.protocol.framing",), start=StartMode.SPAWN)
    with ChildPool(DeviceKind.CPU, policy=policy) as pool:
        spares = PrestartPool(lambda: pool, lambda child: send_setup(child, "cpu", 1), 2)
        spares.fill()
        assert spares.take("candidate", {}) is None
        spares.close()


class Slow:
    """A pool whose children are ready once their file says so. `asked` holds those that are being started."""

    def __init__(
        self,
        pool: ChildPool,
        *,
        wanted: int = 1,
        held: Sequence[HoldDevice] = (),
        timeout_s: float = 60.0,
        source: str = WAITS,
    ) -> None:
        self.asked: queue.SimpleQueue[ChildProcess] = queue.SimpleQueue()
        self.source, self.timeout_s = source.encode(), timeout_s
        self.spares = PrestartPool(lambda: pool, self._set_up, wanted, *held)

    def _set_up(self, child: ChildProcess) -> PendingRequest:
        _provide(child, {"slow.py": self.source})
        asked = child.send_request("load", timeout_s=self.timeout_s, path="slow.py", name="slow", needs=[])
        self.asked.put(child)
        return asked


def let_go(child: ChildProcess) -> None:
    Path(f"/proc/{child.pid}/root/job/go").touch()


def test_an_unready_child_pauses_during_timing_and_continues(pool: ChildPool) -> None:
    slow = Slow(pool)
    spares = slow.spares
    try:
        spares.begin()
        child = slow.asked.get(timeout=60)
        spares.halt()
        frozen = child._frozen
        assert frozen is not None
        let_go(child)
        assert spares.take("candidate", {}) is None
        assert not frozen.has_run(child._root)
        assert spares._children == []
        spares.begin()
        taken = spares.take("candidate", {})  # which waits for it
        assert taken is child
        assert child.request("ping", timeout_s=60.0) is not None
        child.close()
        assert slow.asked.empty(), "no other one was started"
    finally:
        spares.close()


def test_starting_children_end_with_the_ready_ones(pool: ChildPool) -> None:
    slow = Slow(pool, wanted=2)
    slow.spares.begin()
    children = [slow.asked.get(timeout=60), slow.asked.get(timeout=60)]
    slow.spares.empty()
    assert not any(child.alive for child in children)
    slow.spares.close()
    slow.spares.begin()
    assert slow.asked.empty()


@pytest.mark.parametrize("source", [WAITS, "import os\nos._exit(3)\n", "raise ValueError\n"])
def test_a_child_that_never_gets_ready_is_ended_and_not_retried(pool: ChildPool, source: str) -> None:
    slow = Slow(pool, timeout_s=0.3, source=source)
    try:
        slow.spares.fill()
        assert not slow.asked.get(timeout=60).alive
        assert slow.asked.empty()
        assert slow.spares.take("candidate", {}) is None
    finally:
        slow.spares.close()


def test_take_does_not_wait_for_the_device_lock(pool: ChildPool) -> None:
    free = threading.Event()

    @contextmanager
    def held() -> Iterator[DeviceHold]:
        free.wait(60)
        with device_lock("free", exclusive=False, timeout_s=60) as hold:
            yield hold

    slow = Slow(pool, held=[held])
    try:
        slow.spares.begin()
        assert slow.spares.take("candidate", {}) is None
        assert slow.asked.empty()
    finally:
        free.set()
        slow.spares.close()


def test_starting_children_pause_while_another_judge_has_the_device(
    pool: ChildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPWRIGHT_LOCK_DIR", str(tmp_path))
    slow = Slow(pool, held=[lambda: device_lock("this", exclusive=False, timeout_s=30)])
    try:
        slow.spares.begin()
        child = slow.asked.get(timeout=60)
        with device_lock("this", exclusive=True, timeout_s=60):
            frozen = child._frozen
            assert frozen is not None
            let_go(child)
            assert slow.spares.take("candidate", {}) is None
            assert not frozen.has_run(child._root)
        slow.spares._work.result(60)
        taken = slow.spares.take("candidate", {})
        assert taken is child
        child.close()
        assert slow.asked.empty(), "no other one was started"
    finally:
        slow.spares.close()


@pytest.mark.usefixtures("workloads_alone")
def test_a_judge_with_prestarted_children_judges_the_same_and_refills(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, task = judge.session, problem()
    spares = PrestartPool(room.pools.plain, lambda child: send_setup(child, "cpu", 1), 2)
    try:
        monkeypatch.setattr(room.children, "prestarted", spares)
        room.warm()
        assert spares._work is not None
        spares._work.result(30)
        waiting = set(pids(spares))
        assert len(waiting) == 2
        found = judge.judge(task, candidate(CPP), eager_only(judge, task))
        assert found.verdict is Verdict.PASSED, found.reason
        assert set(pids(spares)) < waiting, "used, and none was started while the candidate was timed"
        assert judge.judge(task, candidate(CPP), eager_only(judge, task)).verdict is Verdict.PASSED
        assert judge.judge(task, candidate("nothing to judge")).verdict is Verdict.INVALID_SUBMISSION
        assert spares._work is not None
        spares._work.result(30)
        now = set(pids(spares))
        assert now
        assert not now & waiting  # both were used, and one or more replaced
    finally:
        spares.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in now)
