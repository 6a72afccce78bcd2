"""A judge prepares what its requests will wait for, and nothing that they will not."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from evaluator.device_session import DeviceSession
from evaluator.device_session.pools import PoolCache
from evaluator.devices.cuda_children import OF_BUILDS
from evaluator.errors import CageError, ChildFault
from evaluator.languages.helion import HelionAdapter
from evaluator.stages.judge import Judge
from evaluator.types import DeviceKind


class Session:
    """Stands in for a DeviceSession: notes what is prepared."""

    def __init__(self, *, broken: bool = False) -> None:
        self.prepared: list[str] = []
        self.broken = broken

    def _note(self, what: str) -> None:
        if self.broken:
            raise CageError("no cage can be built")
        self.prepared.append(what)

    def warm_builds(self) -> None:
        self._note("builds")

    def warm(self) -> None:
        self._note("device")

    def warm_samples(self) -> None:
        self._note("samples")


@pytest.mark.parametrize(
    ("kind", "builds", "prepared"),
    [
        (DeviceKind.CPU, False, ["samples"]),
        (DeviceKind.CUDA, False, ["device"]),
        (DeviceKind.CPU, True, ["builds"]),
        (DeviceKind.CUDA, True, ["builds"]),
    ],
)
def test_a_judge_that_only_builds_starts_nothing_on_the_device(
    kind: DeviceKind, builds: bool, prepared: list[str]
) -> None:
    session = Session()
    Judge.warm(SimpleNamespace(session=session, backend=SimpleNamespace(kind=kind)), builds=builds)  # type: ignore[arg-type]
    assert session.prepared == prepared


def test_what_cannot_be_prepared_is_left_to_the_request_that_needs_it() -> None:
    session = Session(broken=True)
    backend = SimpleNamespace(kind=DeviceKind.CUDA)
    Judge.warm(SimpleNamespace(session=session, backend=backend), builds=True)  # type: ignore[arg-type]
    assert session.prepared == []


class Pool:
    """Stands in for a pool of cages: it has none."""

    isolation = ()

    def start(self, **_: object) -> None:
        raise ChildFault("no child")

    def start_without_files(self, **_: object) -> None:
        raise CageError("no child")

    def close(self) -> None:
        pass


class Gpu:
    """Stands in for a GPU. Pools other than the plain one start slowly: when `go` is set."""

    kind = DeviceKind.CUDA
    torch_device = "cuda:0"
    compiles_beside = False

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.started: list[str] = []
        self.preloaded: dict[str, tuple[str, ...]] = {}

    def describe(self) -> SimpleNamespace:
        return SimpleNamespace(uuid="test-warm")

    def build_environment(self) -> Mapping[str, str]:
        return {"BUILDS": "1"}

    def pool(self, environment: Mapping[str, str], *, compiler: bool = False, preload: Sequence[str] = ()) -> Pool:
        name = "compile" if compiler else "build" if environment else "plain"
        if name != "plain":
            self.begun.release()
            assert self.go.wait(30.0)
        self.started.append(name)
        self.preloaded[name] = tuple(preload)
        return Pool()


def test_slow_pools_start_in_threads_and_timing_waits_for_them() -> None:
    gpu = Gpu()
    session = DeviceSession(gpu)  # type: ignore[arg-type]
    try:
        session.warm()
        assert gpu.begun.acquire(timeout=30.0)
        assert gpu.begun.acquire(timeout=30.0)
        assert gpu.started == ["plain"], "requests that need only that do not wait"
        with session.shared():
            gpu.go.set()
        with session.exclusive():
            assert sorted(gpu.started) == ["build", "compile", "plain"]
    finally:
        gpu.go.set()
        session.close()


def test_a_session_that_builds_starts_the_pool_of_builds_alone() -> None:
    gpu = Gpu()
    session = DeviceSession(gpu)  # type: ignore[arg-type]
    gpu.go.set()
    try:
        session.warm_builds()
        with session.exclusive():
            assert gpu.started == ["build"]
    finally:
        session.close()


def test_modules_that_may_touch_cuda_are_imported_ahead_where_no_gpu_is_shown() -> None:
    gpu = Gpu()
    pools = PoolCache(gpu)  # type: ignore[arg-type]
    gpu.go.set()
    pools.for_build(HelionAdapter())
    assert gpu.preloaded.pop("build") == (*OF_BUILDS, *HelionAdapter.own_preloaded)
    pools.for_candidate(HelionAdapter())  # another pool, of which the name says only that it has variables
    assert gpu.preloaded.pop("build") == ()
