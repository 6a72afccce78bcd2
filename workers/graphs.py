"""The graphs of references: traced once for each Problem and process, in a cage, for whoever asks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from evaluator.errors import CageError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Problem
from synthesis import Graph, TraceError
from synthesis.graph.capture import capture
from workers.deadline import Deadline
from workers.errors import StepFailed

KEPT_PROBLEMS = 32
MOST_AT_ONCE = 4  # each needs a cage with torch

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

    def of(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph]:
        """Return the graphs of a Problem by Workload. Raises TraceError, and StepFailed if this machine is at fault."""
        trace = self._trace_of((problem.hash, kind))
        if not trace.lock.acquire(timeout=deadline.remaining_s):
            raise StepFailed("tracing this reference takes too long")
        try:
            if trace.found is None:
                trace.found = self._take(problem, kind, deadline)
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

    def _take(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Found:
        if not self._at_once.acquire(timeout=deadline.remaining_s):
            raise StepFailed("tracing other references takes too long")
        try:
            return _trace(problem, kind, deadline)
        finally:
            self._at_once.release()


@cache
def shared() -> Graphs:
    """Return the graphs of this process."""
    return Graphs()


def _trace(problem: Problem, kind: DeviceKind, deadline: Deadline) -> Found:
    """Return the graphs, or the error that every later Proposal will get too. Raises StepFailed."""
    try:
        with ChildPool(DeviceKind.CPU) as pool:
            return capture(problem, kind, pool, timeout_s=max(1.0, deadline.remaining_s))
    except TraceError as error:
        return error
    except CageError as error:
        raise StepFailed(f"the reference could not be traced here: {error}") from error
