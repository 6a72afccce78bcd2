"""Keep Triton's compiled files in this child's cache, with those from an earlier child of the same Candidate."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def folder() -> Path:
    """Return Triton's cache folder of this child."""
    return Path(os.environ.get("TRITON_CACHE_DIR", "/tmp/triton"))


def restore() -> None:
    """Copy the job folder's files into the cache: Triton writes to its cache, and a job's folder is read-only."""
    given = Path(os.environ.get("WARP_JOB", "/job")) / "triton"
    if given.is_dir():
        shutil.copytree(given, folder(), dirs_exist_ok=True)
