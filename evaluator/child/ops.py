"""What a caged child can be asked to do: `OPS` maps an operation's name to its function (contract: `wire`)."""

from __future__ import annotations

import os
from typing import Any

from evaluator.child import build_ops
from evaluator.child.cpu_ops import CpuRounds
from evaluator.child.gpu.ops import CudaRounds
from evaluator.child.profile_ops import Profiler
from evaluator.child.protocol import job_files
from evaluator.child.protocol.framing import Operation
from evaluator.child.reference.observe import Observer
from evaluator.child.reference.ties import TieRunner
from evaluator.child.session import Session
from evaluator.child.triton_build import offline

_session = Session()  # of this child: it is forked or spawned with nothing in it, and serves one module


def ping(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Answers with the child's own view of itself."""
    return {"pid": os.getpid(), "fds": len(fds)}


OPS: dict[str, Operation] = {
    "ping": ping,
    "files": job_files.receive,
    "setup": _session.setup,
    "load": _session.load,
    "built_files": _session.built_files,
    "recipe": _session.recipe,
    "draws": _session.draws,
    "shapes": _session.shapes,
    "construct": _session.construct,
    "swap": _session.swap,
    "compile": _session.compile,
    "describe": _session.describe,
    "state": _session.state,
    "null": _session.null,
    "run": _session.run,
    "drop": _session.drop,
    "forget": _session.forget,
    **build_ops.OPS,
    **offline.OPS,
    **Observer(_session).operations(),
    **TieRunner(_session).operations(),
    **Profiler(_session).operations(),
    **CpuRounds(_session).operations(),
    **CudaRounds(_session).operations(),
}
