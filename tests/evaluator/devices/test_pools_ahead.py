"""Pools that start ahead: taken by their policy, closed if nobody takes them."""

from __future__ import annotations

import pytest

from evaluator.cage.policy import CagePolicy
from evaluator.devices import pools_ahead
from evaluator.devices.pools_ahead import PoolsAhead
from evaluator.errors import CageError
from evaluator.types import DeviceKind


class Pool:
    """A stand-in for a pool; one that preloads "broken" does not start."""

    made: list[Pool] = []  # noqa: RUF012  a list of the class, emptied by the fixture

    def __init__(self, kind: DeviceKind, *, policy: CagePolicy) -> None:
        if "broken" in policy.preload:
            raise CageError("it does not start")
        self.policy, self.closed = policy, False
        self.made.append(self)

    def close(self) -> None:
        self.closed = True


PLAIN, OTHER, BROKEN = CagePolicy(), CagePolicy(environment={"A": "1"}), CagePolicy(preload=("broken",))


@pytest.fixture(autouse=True)
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    monkeypatch.setattr(pools_ahead, "ChildPool", Pool)
    monkeypatch.setattr(Pool, "made", [])
    return Pool.made


def test_a_pool_is_taken_once_and_the_rest_is_closed(pools: list[Pool]) -> None:
    started = PoolsAhead(DeviceKind.CUDA, [PLAIN, OTHER])
    taken = started.take(PLAIN)
    assert taken is not None
    assert started.take(PLAIN) is None
    started.close()
    assert {pool.policy == OTHER: pool.closed for pool in pools} == {True: True, False: False}


def test_a_pool_that_does_not_start_is_left_to_whoever_needs_it(pools: list[Pool]) -> None:
    started = PoolsAhead(DeviceKind.CUDA, [BROKEN, BROKEN])
    assert started.take(BROKEN) is None
    started.close()
    assert not pools


@pytest.mark.parametrize("device", ["", "cpu", "cuda:x", "tpu:0"])
def test_nothing_starts_for_other_devices(device: str) -> None:
    assert pools_ahead.begin(device) is None
