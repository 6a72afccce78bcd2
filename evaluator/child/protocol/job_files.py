"""Transfer the files of a job as one descriptor that holds their contents one after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(folder: str, files: Sequence[tuple[str, int]], payload: int) -> None:
    """Write (relative path, size in bytes) of `payload` below `folder`. The judge has checked the names."""
    offset = 0
    for name, size in files:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.pread(payload, size, offset))
        path.chmod(0o644)
        offset += size


def receive(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Receive files: operation "files" of a child that was started before its job was known."""
    write(os.environ.get("WARP_JOB", "/job"), request["files"], fds[0])
    return {}
