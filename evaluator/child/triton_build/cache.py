"""Where Triton keeps what it compiled in this child, and what an earlier child of the same Candidate handed down."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def folder() -> Path:
    """Triton's cache of this child."""
    return Path(os.environ.get("TRITON_CACHE_DIR", "/tmp/triton"))


def restore() -> None:
    """Put what lies in the job's folder into the cache, since Triton writes there and a job's folder is read-only."""
    given = Path(os.environ.get("WARP_JOB", "/job")) / "triton"
    if given.is_dir():
        shutil.copytree(given, folder(), dirs_exist_ok=True)
