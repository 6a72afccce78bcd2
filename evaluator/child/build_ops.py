"""Report compiled kernels from a caged child, after it imports the Candidate (build stage) or runs it."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluator.child.gpu.cubin import resource_usage
from evaluator.child.loading import execute
from evaluator.child.protocol.framing import Operation

_MAX_KERNELS = 64


def build_imports(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Execute the file at "path" (default: the job's candidate). Return {"kernels": resources of each CUDA kernel}.

    Let the Candidate's exceptions pass. A compile error carries its own line.
    """
    execute(Path(request.get("path", Path(os.environ.get("WARP_JOB", "/job"), "candidate.py"))), "candidate")
    return kernels(request, fds)


def kernels(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Return {"kernels": [{name, registers, shared_bytes, ...}]} of every kernel that this process has compiled."""
    del request, fds
    found = [*_cuda_kernels(), *_triton_kernels(), *_cutile_kernels()]
    return {"kernels": found[:_MAX_KERNELS]}


def _cuda_kernels() -> Iterator[dict[str, Any]]:
    native = sys.modules.get("warpwright_native")
    if native is None:
        return
    chain = sys.modules.get("evaluator.child.gpu.chain")
    for made in gc.get_objects():
        if type(made) is native.CudaModule and not (chain is not None and chain.is_ours(made)):
            yield from resource_usage(made.image)


def _triton_kernels() -> Iterator[dict[str, Any]]:
    compiler = sys.modules.get("triton.compiler.compiler")
    if compiler is None:
        return
    for made in gc.get_objects():
        if type(made) is compiler.CompiledKernel:
            metadata = made.metadata
            yield {
                "name": str(getattr(metadata, "name", made.name)),
                "registers": _count(getattr(made, "n_regs", None)),
                "spills": _count(getattr(made, "n_spills", None)),
                "shared_bytes": _count(getattr(metadata, "shared", None)),
                "num_warps": _count(getattr(metadata, "num_warps", None)),
                "num_stages": _count(getattr(metadata, "num_stages", None)),
            }


def _cutile_kernels() -> Iterator[dict[str, Any]]:
    """Yield those that cuTile's cache holds, a database with one cubin a row."""
    cached = Path(os.environ.get("CUDA_TILE_CACHE_DIR", ""), "cache.db")
    if "cuda.tile" not in sys.modules or not cached.is_file():
        return
    with contextlib.closing(sqlite3.connect(cached)) as database:
        for (image,) in database.execute("SELECT blob FROM cache ORDER BY atime LIMIT ?", (_MAX_KERNELS,)):
            yield from resource_usage(image)


def _count(value: object) -> int | None:
    return value if type(value) is int else None


OPS: dict[str, Operation] = {"build_imports": build_imports, "kernels": kernels}
