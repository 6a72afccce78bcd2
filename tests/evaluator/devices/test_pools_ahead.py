"""Pools that start ahead: taken by their policy, closed if nobody takes them."""

from __future__ import annotations

import pytest

from evaluator.cage.policy import CagePolicy
from evaluator.devices import pools_ahead
from evaluator.devices.cuda_children import COMPILER
from evaluator.devices.pools_ahead import PoolsAhead, gpu_pool
from evaluator.errors import CageError
from evaluator.types import DeviceKind

UUID, TARGET = "GPU-0", "sm_90a"


class Pool:
    """A stand-in for a pool; one with a compiler does not start if `broken`."""

    broken = False
    made: list[Pool] = []  # noqa: RUF012  a list of the class, emptied by the fixture

    def __init__(self, kind: DeviceKind, *, policy: CagePolicy, cpus: frozenset[int] | None = None) -> None:
        if self.broken and any("compiler" in name for name in policy.preload):
            raise CageError("no fork survives that")
        self.policy, self.closed = policy, False
        self.made.append(self)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    monkeypatch.setattr(pools_ahead, "ChildPool", Pool)
    monkeypatch.setattr(Pool, "made", [])
    return Pool.made


def ahead() -> PoolsAhead:
    policies = [pools_ahead.cuda_children.policy(UUID, TARGET, {}, one) for one in ((), (COMPILER,))]
    return PoolsAhead(DeviceKind.CUDA, policies)


def test_a_pool_is_taken_once_and_the_rest_is_closed(pools: list[Pool]) -> None:
    started = ahead()
    first = gpu_pool(UUID, TARGET, {}, compiler=False, cpus=None, ahead=started)
    second = gpu_pool(UUID, TARGET, {}, compiler=False, cpus=None, ahead=started)
    assert first is not second
    started.close()
    assert [pool.closed for pool in pools if pool not in (first, second)] == [True]


def test_a_compiler_that_cannot_be_loaded_before_the_fork_is_left_to_the_children(
    pools: list[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pool, "broken", True)
    started = ahead()
    pool = gpu_pool(UUID, TARGET, {}, compiler=True, cpus=None, ahead=started)
    assert COMPILER not in pool.policy.preload
    started.close()
    assert all(one.closed for one in pools if one is not pool)


@pytest.mark.parametrize("device", ["", "cpu", "cuda:x", "tpu:0"])
def test_nothing_starts_for_other_devices(device: str) -> None:
    assert pools_ahead.begin(device) is None
