"""List the operations of a caged child: `OPS` maps each name to its function (contract: `protocol.framing`)."""

from __future__ import annotations

import os
from typing import Any

from evaluator.child import build_ops, generated
from evaluator.child.cpu_ops import CpuRounds
from evaluator.child.gpu.ops import CudaRounds
from evaluator.child.profile_ops import Profiler
from evaluator.child.protocol import job_files
from evaluator.child.protocol.framing import Operation
from evaluator.child.reference.observe import Observer
from evaluator.child.reference.recipes import Recipes
from evaluator.child.reference.ties import TieRunner
from evaluator.child.session import Session
from evaluator.child.triton_build import offline

_session = Session()  # a child is forked or spawned with an empty one, and serves one module


def ping(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Return the child's own pid and the number of received descriptors."""
    return {"pid": os.getpid(), "fds": len(fds)}


OPS: dict[str, Operation] = {
    "ping": ping,
    "files": job_files.receive,
    "setup": _session.setup,
    "load": _session.load,
    "built_files": _session.built_files,
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
    **generated.OPS,
    **offline.OPS,
    **Recipes(_session).operations(),
    **Observer(_session).operations(),
    **TieRunner(_session).operations(),
    **Profiler(_session).operations(),
    **CpuRounds(_session).operations(),
    **CudaRounds(_session).operations(),
}
