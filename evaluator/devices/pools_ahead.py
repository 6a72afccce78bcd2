"""Pools of children that start while the judge imports torch: both take seconds, on different cores. Without torch."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from evaluator.cage.policy import CagePolicy
from evaluator.child.protocol import cuda_driver
from evaluator.child.protocol.cuda_driver import DriverError
from evaluator.devices import cuda_children
from evaluator.devices.compilers import compiler_environment
from evaluator.errors import CageError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind


class PoolsAhead:
    """Pools for one device kind, one for each policy, that start in threads. `close` ends those that nobody took."""

    def __init__(self, kind: DeviceKind, policies: Sequence[CagePolicy]) -> None:
        # The threads live as long as this object: a cage ends with the thread that started it.
        self._starters = ThreadPoolExecutor(len(policies), thread_name_prefix="pools-ahead")
        self._lock = threading.Lock()  # threads that warm a judge up take pools
        self._pools = [(policy, self._starters.submit(ChildPool, kind, policy=policy)) for policy in policies]

    def take(self, policy: CagePolicy) -> ChildPool | None:
        """Return the pool with this policy, waiting for it; None if there is none or if it does not start."""
        with self._lock:
            index = next((n for n, (known, _) in enumerate(self._pools) if known == policy), None)
            future = None if index is None else self._pools.pop(index)[1]
        return None if future is None else _started(future)

    def close(self) -> None:
        while self._pools:
            pool = _started(self._pools.pop()[1])
            if pool is not None:
                pool.close()
        self._starters.shutdown()


def _started(future: Future[ChildPool]) -> ChildPool | None:
    try:
        return future.result()
    except CageError:  # whoever needs the pool tries again, and reports it
        return None


def gpu_pool(
    uuid: str,
    target: str,
    environment: Mapping[str, str],
    *,
    preload: Sequence[str] = (),
    compiler: bool,
    cpus: frozenset[int] | None,
    ahead: PoolsAhead | None,
) -> ChildPool:
    """Return the pool of children with this policy (`cuda_children.policy`), from `ahead` or started now.

    Children with a `compiler` load it themselves where it cannot be loaded before they are forked. Raises CageError.
    """
    modules = (*preload, cuda_children.COMPILER) if compiler else preload
    policy = cuda_children.policy(uuid, target, environment, modules)
    try:
        return (ahead and ahead.take(policy)) or ChildPool(DeviceKind.CUDA, cpus=cpus, policy=policy)
    except CageError:
        if not compiler:
            raise
        return ChildPool(DeviceKind.CUDA, cpus=cpus, policy=cuda_children.policy(uuid, target, environment, preload))


def begin(device: str, *, builds: bool = False) -> PoolsAhead | None:
    """Begin to start the pools that a judge of "cuda:N" needs first, or with `builds` one that only builds.

    Return None for a CPU, which has cores for one at a time, and where no driver answers.
    """
    kind, _, ordinal = device.partition(":")
    if kind != "cuda" or not (ordinal or "0").isdigit() or cuda_driver.available():
        return None
    try:
        uuid, target = cuda_driver.identify(int(ordinal or 0))
    except DriverError:
        return None
    policies = [cuda_children.policy(uuid, target, cuda_children.build_environment(target), cuda_children.OF_BUILDS)]
    if not builds:
        compiler = cuda_children.policy(uuid, target, compiler_environment(DeviceKind.CUDA), (cuda_children.COMPILER,))
        policies = [compiler, cuda_children.policy(uuid, target, {}), *policies]
    return PoolsAhead(DeviceKind.CUDA, policies)
