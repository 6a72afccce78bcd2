"""The graphs of references: traced once for each Problem and process, in a cage, for all that ask.

A trace takes a tenth of a second, but its imports take four. So one fork server that has made them serves all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

from evaluator.cage.policy import CagePolicy
from evaluator.errors import CageError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Problem
from synthesis import Graph, TraceError
from synthesis.graph.capture import capture
from workers.deadline import Deadline
from workers.errors import StepFailed

KEPT_PROBLEMS = 32
MOST_AT_ONCE = 4  # each takes a core
PRELOAD = ("torch", "evaluator.child.ops", "torch._dynamo")  # fake tensors import the last one

Key = tuple[str, DeviceKind]
Found = Mapping[str, Graph] | TraceError


@dataclass(slots=True)
class _Trace:
    """A Problem's graphs, once they are found. Its lock is held by the thread that traces."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    found: Found | None = None


class Graphs:
    """Keeps the graphs of the newest Problems. One thread traces a Problem; others that want it wait for that."""

    def __init__(self) -> None:
        self._traces: OrderedDict[Key, _Trace] = OrderedDict()
        self._lock = threading.Lock()
        self._at_once = threading.BoundedSemaphore(MOST_AT_ONCE)
        # Its thread lives as long as this object: a cage ends with the thread that started it.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="traces")
        self._pool: Future[ChildPool] | None = None

    def begin(self) -> None:
        """Start the pool that the first trace would wait for, in a thread. A failure occurs again in a trace."""
        self._starting()

    def close(self) -> None:
        """End the cages. A trace in progress fails; a later one starts new cages."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and not pool.cancel() and pool.exception() is None:
            pool.result().close()

    def of(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph]:
        """Return the graphs of a Problem by Workload. Raises TraceError, and StepFailed if this machine is at fault."""
        trace = self._trace_of((problem.hash, kind))
        if not trace.lock.acquire(timeout=deadline.remaining_s):
            raise StepFailed("tracing this reference takes too long")
        try:
            if trace.found is None:
                trace.found = self._trace_in_turn(problem, kind, deadline)
        finally:
            trace.lock.release()
        if isinstance(trace.found, TraceError):
            raise trace.found
        return trace.found

    def is_begun(self, problem: Problem, kind: DeviceKind) -> bool:
        """Return whether a Problem's graphs are known, or a thread traces them."""
        with self._lock:
            trace = self._traces.get((problem.hash, kind))
        return trace is not None and (trace.found is not None or trace.lock.locked())

    def _trace_of(self, key: Key) -> _Trace:
        with self._lock:
            trace = self._traces.setdefault(key, _Trace())
            self._traces.move_to_end(key)
            while len(self._traces) > KEPT_PROBLEMS:
                self._traces.popitem(last=False)
        return trace

    def _trace_in_turn(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Found:
        if not self._at_once.acquire(timeout=deadline.remaining_s):
            raise StepFailed("tracing other references takes too long")
        try:
            return self._traced(problem, kind, deadline)
        finally:
            self._at_once.release()

    def _traced(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Found:
        """Return the graphs, or the error that every later Proposal will get too. Raises StepFailed."""
        starting = self._starting()
        try:
            return capture(problem, kind, starting.result(), timeout_s=max(1.0, deadline.remaining_s))
        except TraceError as error:
            return error
        except CageError as error:
            self._forget_unless_started(starting)
            raise StepFailed(f"the reference could not be traced here: {error}") from error

    def _starting(self) -> Future[ChildPool]:
        """Return the pool for traces, which may still be starting."""
        with self._lock:
            if self._pool is None:
                self._pool = self._starter.submit(_start)
            return self._pool

    def _forget_unless_started(self, pool: Future[ChildPool]) -> None:
        """Let the next trace start a pool if this one did not start. One that did replaces its own ended children."""
        with self._lock:
            if self._pool is pool and pool.exception() is not None:
                self._pool = None


@cache
def shared() -> Graphs:
    """Return the graphs of this process."""
    return Graphs()


def _start() -> ChildPool:
    return ChildPool(DeviceKind.CPU, policy=CagePolicy(preload=PRELOAD))
