"""Give a child a folder on the machine's own disk, and its Landlock paths, where bubblewrap cannot run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.cage import bwrap
from evaluator.child import landlock
from evaluator.child.compiler_caches import CACHES
from evaluator.types import DeviceKind

# Message fields of a job whose own mounts provide these paths.
CAGED: Mapping[str, Any] = {
    "folder": "/job",
    "environment": {"WARP_JOB": "/job"},
    "readable": [],
    "writable": [],
}
_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "CUDA_CACHE_PATH": "cuda-cache",
    **{cache.variable: cache.name for cache in CACHES},
}


class BareFolder:
    """A temporary folder with `job` (read-only to the child) and `tmp` (its own)."""

    def __init__(self, kind: DeviceKind, uid: int | None) -> None:
        self._kind = kind
        self._path = Path(tempfile.mkdtemp(prefix="warpwright-cage-"))
        self._path.chmod(0o711)
        self._job = self._path / "job"
        self._tmp = self._path / "tmp"
        self._job.mkdir(mode=0o755)
        self._tmp.mkdir(mode=0o700)
        if uid is not None:
            os.chown(self._tmp, uid, uid)

    def message(self) -> dict[str, Any]:
        """Return the fields of a job's message that differ from those of a caged job."""
        environment = {
            "WARP_JOB": str(self._job),
            "TMPDIR": str(self._tmp),
            "HOME": str(self._tmp / "home"),
            **{name: str(self._tmp / folder) for name, folder in _CACHES.items()},
        }
        confined = landlock.abi() > 0
        return {
            "folder": str(self._job),
            "environment": environment,
            "readable": [*bwrap.readable_paths(self._kind), str(self._job)] if confined else [],
            "writable": [str(self._tmp), *bwrap.writable_devices(self._kind)],
        }

    def remove(self) -> None:
        """Delete the folder, in spite of any modes that the child left."""
        shutil.rmtree(self._path, ignore_errors=True)
