"""Control groups, where this machine allows them, and the least requested isolation."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.cage import bwrap, cgroup
from evaluator.cage.level import levels
from evaluator.cage.policy import MIB, MINIMUM_VARIABLE, Limits, Minimum, StartMode, minimum_asked_for
from evaluator.errors import CageError, ChildCrashed, ChildTimeout
from evaluator.sandbox.pool import ChildPool, _below
from evaluator.types import DeviceKind
from tests.evaluator.cage.conftest import LIGHT, PROBE

RAMP = """
import time
def grow(request, fds):
    kept = []
    for _ in range(1000):
        kept.append(bytes(1 << 20).replace(b"\\0", b"x"))
    return {}
OPS = {"grow": grow}
"""
needs_groups = pytest.mark.skipif(cgroup.find_hierarchy() is None, reason="no control group can be made here")


@pytest.fixture
def pool() -> Iterator[ChildPool]:
    with ChildPool(DeviceKind.CPU, policy=LIGHT) as one:
        yield one


def groups() -> list[Path]:
    place = cgroup.find_hierarchy()
    assert place is not None
    return [path for folder in set(place.folders.values()) for path in folder.glob(f"warpwright-{os.getpid()}-*")]


@needs_groups
def test_a_child_killed_for_memory_is_reported_as_such(pool: ChildPool, tmp_path: Path) -> None:
    limits = Limits(address_space_bytes=None, resident_bytes=100 * MIB, tmp_bytes=MIB)
    before = groups()
    with pool._monitor.paused():  # the watchdog looks away, so it is the kernel
        child = pool.start(name="ramp", files={"ramp.py": RAMP.encode()}, limits=limits, operations="ramp")
        with child, pytest.raises(ChildCrashed) as found:
            child.request("grow", timeout_s=30.0)
    assert found.value.oom
    assert groups() == before  # removed with the child


@needs_groups
def test_a_group_holds_the_job_and_its_supervisor(pool: ChildPool) -> None:
    with pool.start(name="one", files={"probe.py": PROBE}, operations="probe") as child:
        held = {int(pid) for path in groups() for pid in (path / "cgroup.procs").read_text().split()}
        assert child.pid in held


@pytest.mark.parametrize("kind", DeviceKind)
def test_the_minimum_isolation_excludes_levels(kind: DeviceKind) -> None:
    every = levels(StartMode.FORK, kind)
    bare = next(level for level in every if not level.caged)
    caged = next(level for level in every if level.caged)
    assert _below(Minimum.ANY, bare) == ""
    assert "bubblewrap" in _below(Minimum.CAGED, bare)
    assert _below(Minimum.CAGED, caged) == ""
    assert "namespaces" in _below(Minimum.WHOLE, bare)


def test_a_pool_below_the_minimum_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MINIMUM_VARIABLE, "caged")
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: None)
    with pytest.raises(CageError, match="requested isolation") as found:
        ChildPool(DeviceKind.CPU, policy=replace(LIGHT, minimum=minimum_asked_for()))
    assert "install bubblewrap" in str(found.value)


def test_unknown_minimum_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MINIMUM_VARIABLE, raising=False)
    assert minimum_asked_for() is Minimum.ANY
    monkeypatch.setenv(MINIMUM_VARIABLE, "much")
    with pytest.raises(CageError, match="any, caged, whole"):
        minimum_asked_for()


@needs_groups
def test_groups_of_ended_judges_are_removed() -> None:
    place = cgroup.find_hierarchy()
    assert place is not None
    folder = place.folders["memory"]
    gone, mine = folder / "warpwright-4194304999-0", folder / f"warpwright-{os.getpid()}-sweep"
    for group in (gone, mine):
        group.mkdir()
    try:
        cgroup._sweep(place)
        assert not gone.exists()
        assert mine.exists()
    finally:
        mine.rmdir()


def test_run_queue_time_does_not_count_against_a_child(pool: ChildPool, monkeypatch: pytest.MonkeyPatch) -> None:
    waited_ns = [0]
    monkeypatch.setattr("evaluator.cage.freezer.total_queue_ns", lambda root: waited_ns[0])
    slow = "import time\ndef nap(request, fds):\n    time.sleep(request['s'])\n    return {}\nOPS = {'nap': nap}\n"
    with pool.start(name="slow", files={"slow.py": slow.encode()}, operations="slow") as child:
        waited_ns[0] = int(5e9)
        assert child.request("nap", timeout_s=0.2, s=0.5) == {}
        with pytest.raises(ChildTimeout):  # what was allowed once is not allowed again
            child.request("nap", timeout_s=0.2, s=0.5)


def test_a_limit_is_extended_four_times_at_most(pool: ChildPool, monkeypatch: pytest.MonkeyPatch) -> None:
    spins = "def spin(request, fds):\n    while True:\n        pass\nOPS = {'spin': spin}\n"
    clock = iter(range(1, 1000))
    monkeypatch.setattr("evaluator.cage.freezer.total_queue_ns", lambda root: int(1e9) * next(clock))
    with pool.start(name="spins", files={"spins.py": spins.encode()}, operations="spins") as child:
        start = time.monotonic()
        with pytest.raises(ChildTimeout):
            child.request("spin", timeout_s=0.25)
        assert 0.9 < time.monotonic() - start < 60  # a thousand times its limit without an end
