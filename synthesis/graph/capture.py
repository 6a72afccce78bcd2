"""Trace a Problem's reference inside a cage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.errors import ChildFault
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Problem
from synthesis.errors import TraceError
from synthesis.graph.aten import Graph, read_reply
from synthesis.graph.probes import join, probes

TRACER = "warpwright_tracer"
TIMEOUT_S = 90.0


def request_for(problem: Problem, kind: DeviceKind) -> dict[str, Any]:
    """Return the tracer's request: every Workload of a device kind that is not held out."""
    workloads = [w for w in problem.workloads_for(kind) if not w.held_out] or list(problem.workloads_for(kind))
    listed = [{"name": w.name, "sizes": dict(w.sizes)} for w in workloads]
    return {"source": problem.source, "workloads": listed, "probes": probes(listed), "train": problem.train}


def capture(
    problem: Problem, kind: DeviceKind, pool: ChildPool, *, timeout_s: float = TIMEOUT_S
) -> Mapping[str, Graph]:
    """Trace the graphs of a Problem by Workload, in a caged child of a CPU `pool` (no device is needed).

    Raise TraceError when the reference cannot be traced, CageError when this machine fails.
    """
    request = request_for(problem, kind)
    tracer = Path(__file__).with_name("trace.py").read_bytes()
    with pool.start(name="trace", files={f"{TRACER}.py": tracer}, operations=TRACER) as child:
        try:
            reply = child.request("trace", timeout_s=timeout_s, **request)
        except ChildFault as fault:
            raise TraceError(str(fault)) from fault
    return join(read_reply(json.dumps(reply), problem.source), request["probes"])
