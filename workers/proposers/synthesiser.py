"""The synthesiser: traces the reference once per Problem, in a cage, and writes one design per Proposal."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from db.views.work import ProposalResult
from evaluator.errors import CageError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Problem
from evolution.types import ProposalOutcome
from runtime.settings import Settings
from synthesis import Graph, TraceError, Unsupported, propose
from synthesis.graph.capture import capture
from workers.deadline import Deadline
from workers.errors import StepFailed
from workers.proposers.base import Request, candidate, none

KEPT_PROBLEMS = 32

Key = tuple[str, DeviceKind]


class SynthesiserProposer:
    """Keeps the graphs of the newest Problems. One thread at a time traces; any thread writes."""

    def __init__(self, settings: Settings) -> None:
        del settings
        self._graphs: OrderedDict[Key, Mapping[str, Graph] | TraceError] = OrderedDict()
        self._lock = threading.Lock()

    def propose(self, request: Request) -> ProposalResult:
        """Return design `arm_number` of this Run, EXHAUSTED if there is none, or none for this reference."""
        work = request.work
        try:
            graphs = self._graphs_of(work.problem, work.device_kind, request.deadline)
            draft = propose(graphs, work.device_kind, number=work.arm_number, seed=work.run_seed, tried=work.tried)
        except (TraceError, Unsupported) as error:
            return none(ProposalOutcome.EXHAUSTED, f"the synthesiser has nothing for this reference: {error}")
        if draft is None:
            return none(ProposalOutcome.EXHAUSTED, "the synthesiser has written all its designs")
        settings = ", ".join(f"{key}={value}" for key, value in draft.configuration.items())
        return candidate(draft.source, detail=f"{draft.strategy}{f' ({settings})' if settings else ''}")

    def _graphs_of(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph]:
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


def _trace(problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph] | TraceError:
    """Return the graphs, or the error that every later Proposal will get too. Raises StepFailed."""
    try:
        with ChildPool(DeviceKind.CPU) as pool:
            return capture(problem, kind, pool, timeout_s=max(1.0, deadline.remaining_s))
    except TraceError as error:
        return error
    except CageError as error:
        raise StepFailed(f"the reference could not be traced here: {error}") from error
