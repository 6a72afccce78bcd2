"""Start and end children, on a GPU in the background: its driver takes a quarter of a second to start and end one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from evaluator.device_session.pools import PoolCache
from evaluator.devices.base import DeviceBackend
from evaluator.devices.device_sharing import DeviceSharing
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import PrestartPool
from evaluator.sandbox.setup import send_setup
from evaluator.subject import Subject
from evaluator.types import DeviceKind

_PRESTARTED = 3  # a new Problem needs three: its reference, a Candidate, a Baseline


class ChildStarter:
    """Starts and ends the children of one device."""

    def __init__(self, backend: DeviceBackend, pools: PoolCache, sharing: DeviceSharing) -> None:
        self._backend, self._pools, self._sharing = backend, pools, sharing
        wanted = _PRESTARTED if backend.kind is DeviceKind.CUDA else 0  # a CPU forks one in 10 ms
        device = str(backend.torch_device)
        self.prestarted = PrestartPool(
            pools.plain, lambda child: send_setup(child, device, backend.threads), wanted, sharing.in_background
        )
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="closes-children")
        self._closing: list[Future[None]] = []

    def start(self, pool: ChildPool, source: str, kind: str, **how: Any) -> Subject:
        """Start a child as `Subject.start` does, from the prestarted ones if `pool` is theirs."""
        prestarted = self.prestarted if self._pools.is_plain(pool) else None
        subject = Subject.start(pool, self._backend, source, kind, prestarted=prestarted, **how)
        subject.yield_device = self._sharing.yield_to_waiters
        return subject

    def end(self, subject: Subject) -> None:
        """Close a child, on a GPU in the background. See `finish_background_work`."""
        if self._backend.kind is DeviceKind.CPU:
            subject.close()
        else:
            self._closing.append(self._closer.submit(self._close, subject))

    def _close(self, subject: Subject) -> None:
        with self._sharing.in_background():  # not while another judge times
            subject.close()

    def finish_background_work(self) -> None:
        """Wait until ended children are gone and starting ones are stopped, before timing."""
        self.prestarted.halt()
        closing, self._closing = self._closing, []
        for one in closing:
            one.result()

    def close(self) -> None:
        self.finish_background_work()
        self._closer.shutdown()
        self.prestarted.close()
