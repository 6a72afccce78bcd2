"""The graphs of references: traced once for each Problem and process, in a cage, for whoever asks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache

from evaluator.errors import CageError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Problem
from synthesis import Graph, TraceError
from synthesis.graph.capture import capture
from workers.deadline import Deadline
from workers.errors import StepFailed

KEPT_PROBLEMS = 32

Key = tuple[str, DeviceKind]


class Graphs:
    """Keeps the graphs of the newest Problems. One thread at a time traces."""

    def __init__(self) -> None:
        self._graphs: OrderedDict[Key, Mapping[str, Graph] | TraceError] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph]:
        """Return the graphs of a Problem by Workload. Raises TraceError, and StepFailed if this machine is at fault."""
        key = (problem.hash, kind)
        if not self._lock.acquire(timeout=deadline.remaining_s):
            raise StepFailed("tracing another reference takes too long")
        try:
            if key not in self._graphs:
                self._graphs[key] = _trace(problem, kind, deadline)
                while len(self._graphs) > KEPT_PROBLEMS:
                    self._graphs.popitem(last=False)
            self._graphs.move_to_end(key)
            graphs = self._graphs[key]
        finally:
            self._lock.release()
        if isinstance(graphs, TraceError):
            raise graphs
        return graphs


@cache
def shared() -> Graphs:
    """Return the graphs of this process."""
    return Graphs()


def _trace(problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph] | TraceError:
    """Return the graphs, or the error that every later Proposal will get too. Raises StepFailed."""
    try:
        with ChildPool(DeviceKind.CPU) as pool:
            return capture(problem, kind, pool, timeout_s=max(1.0, deadline.remaining_s))
    except TraceError as error:
        return error
    except CageError as error:
        raise StepFailed(f"the reference could not be traced here: {error}") from error
