"""One judge's session on a device: its caches of children, and its share of the device."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress

from evaluator.device_session.children import ChildStarter
from evaluator.device_session.comparators import ComparatorCache
from evaluator.device_session.pools import PoolCache
from evaluator.device_session.references import ReferenceCache
from evaluator.devices.base import DeviceBackend
from evaluator.devices.device_sharing import DeviceSharing
from evaluator.errors import ChildFault
from evaluator.sandbox import symbols
from evaluator.subject import Subject
from evaluator.types import DeviceKind, Language, Problem, Workload

_LOOK_S = 0.25
"""Between looks at who waits for the device, while Baselines compile."""


class DeviceSession:
    """The caches of one device. `close` ends every child."""

    def __init__(self, backend: DeviceBackend) -> None:
        self.backend = backend
        self.on_wait: Callable[[], None] = lambda: None  # called when others have the device
        self.sharing = DeviceSharing(backend, self._candidates_frozen)
        self.pools = PoolCache(backend)
        self.children = ChildStarter(backend, self.pools, self.sharing)
        on_cpu = backend.kind is DeviceKind.CPU
        self.references = ReferenceCache(self.pools, self.children, trusts_memory_errors=on_cpu)
        self.comparators = ComparatorCache(backend, self.pools, self.children)
        self._candidates: weakref.WeakSet[Subject] = weakref.WeakSet()
        # Its threads live as long as the session: a cage ends with the thread that started it.
        self._warmer = ThreadPoolExecutor(2, thread_name_prefix="warms-up")
        self._warming: list[Future[None]] = []

    def shared(self) -> AbstractContextManager[None]:
        """Hold the device while no other judge times on it (`DeviceSharing.shared`). Not reentrant."""
        self.comparators.advance()
        return self.sharing.shared()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone, for timing."""
        self.comparators.advance()
        self.children.finish_background_work()
        wait(self._warming)
        with self.sharing.exclusive(), self.comparators.paused():
            yield

    def await_compiled(
        self, problem: Problem, workloads: Sequence[Workload], modes: Sequence[str], limit_s: float
    ) -> None:
        """Wait until Baselines have compiled, or for `limit_s`. They stand still while another judge times."""
        end = time.monotonic() + limit_s
        with self.shared():
            while (left_s := end - time.monotonic()) > 0:
                if all(self.comparators.is_ready(problem, w, mode) for w in workloads for mode in modes):
                    return
                self.comparators.await_all(problem, workloads, modes, min(left_s, _LOOK_S))
                self.sharing.yield_to_waiters()

    def freeze_while_waiting(self, subject: Subject) -> None:
        """Freeze a Candidate's child whenever this judge waits for the device, since others may time then.

        For the judge's own thread.
        """
        self._candidates.add(subject)

    @contextmanager
    def _candidates_frozen(self) -> Iterator[None]:
        self.on_wait()
        running = [subject.child for subject in list(self._candidates) if subject.child.runs]
        for child in running:
            with suppress(ChildFault):  # a child that cannot be frozen is ended; its next request fails
                child.freeze()
        try:
            with self.comparators.paused():
                yield
        finally:
            for child in running:
                child.thaw()

    def warm(self) -> None:
        """Begin to prepare what the first requests would wait for: children, and in threads what compilers need.

        Who needs a part of it waits for that part alone. Raises CageError.
        """
        self._warming = [self._warmer.submit(task) for task in (self.comparators.start_pool, self._prepare_builds)]
        self.pools.plain()
        self.children.prestarted.begin()

    def warm_builds(self) -> None:
        """Begin to prepare in a thread what the first builds would wait for."""
        self._warming = [self._warmer.submit(self._prepare_builds)]

    def warm_samples(self) -> None:
        """Begin to prepare in a thread what the first samples of a child would wait for: on a machine that has just
        started, its disk is searched for seconds."""
        self._warming = [self._warmer.submit(symbols.prepare)]

    def _prepare_builds(self) -> None:
        self.pools.for_build(None)
        for language in Language:
            self.pools.runtime_files(language)

    def reset(self) -> None:
        """End the children that start quickly again, after a fault of the device."""
        self.references.clear()
        self.comparators.clear_null_children()
        self.children.prestarted.empty()

    def end_all(self) -> None:
        """End every cached child and wait until they are gone."""
        self.reset()
        self.comparators.clear()
        self.children.finish_background_work()

    def forget(self, problem: Problem) -> None:
        """End the children of a Problem."""
        self.comparators.forget(problem)
        self.references.forget(problem)

    def close(self) -> None:
        self.end_all()
        self.comparators.close()
        self.children.close()
        self._warmer.shutdown(cancel_futures=True)
        self.pools.close()
