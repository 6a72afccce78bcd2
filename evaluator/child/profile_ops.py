"""Report the kernels of a caged child while they run: names, times, launch shapes. They are claims, for reports.

torch's profiler uses CUPTI, which works inside the cage. The launch details of its trace (registers, shared memory,
occupancy) come from the driver.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import read_tree
from evaluator.child.session import Session

_MOST = 64
_FIELDS = {
    "grid": "grid", "block": "block", "registers per thread": "registers", "shared memory": "shared_bytes",
    "est. achieved occupancy %": "occupancy_percent",
}  # fmt: skip


class Profiler:
    """A few calls of the session's model, observed by torch's profiler."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"profile": self.profile}

    def profile(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return {"launches": [{"name", "calls", "time_us" of one forward, ...}]} for "calls" calls on the granted
        inputs."""
        session = self._session
        tensors, count = session._open(request, fds).calls[0], int(request["calls"])
        arguments = read_tree(request["tree"], tensors.__getitem__)
        with torch.no_grad():
            session.call(*arguments)  # compiles on its first call
            session._device().finish()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                for _ in range(count):
                    session.call(*arguments)
                session._device().finish()
        return {"launches": launches(read_trace(profile), count)}


def read_trace(profile: torch.profiler.profile) -> dict[str, Any]:
    """Return the trace of a finished profile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profile.export_chrome_trace(str(path))
        trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trace


def launches(trace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the kernels of a trace of `count` calls, the longest first, with microseconds and launches per call."""
    found: dict[str, dict[str, Any]] = {}
    for event in trace.get("traceEvents", []):
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        name = str(event.get("name"))[:200]
        said = event.get("args", {})
        shape = {ours: said[theirs] for theirs, ours in _FIELDS.items() if theirs in said}
        one = found.setdefault(name, {"name": name, "launches": 0.0, "time_us": 0.0, **shape})
        one["launches"] += 1 / count
        one["time_us"] += float(event.get("dur", 0.0)) / count
    return sorted(found.values(), key=lambda one: -one["time_us"])[:_MOST]
