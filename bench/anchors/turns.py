"""Let one process at a time have the GPU to itself, while others may compile.

Two locked files: who measures holds the second alone, who merely uses the GPU (autotuning) shares it. Everybody passes
the first on the way, so that one who waits to measure is not overtaken for ever. The system releases the locks of a
process that dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


class Turns:
    def __init__(self, name: str) -> None:
        folder = Path(tempfile.gettempdir())
        self.holding = False
        self.paths = [folder / f"warpwright-anchors-{name}-{part}.lock" for part in ("gate", "device")]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the GPU alone."""
        gate, device = (os.open(path, os.O_RDWR | os.O_CREAT) for path in self.paths)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(device, fcntl.LOCK_EX)
            self.holding = True
            yield
        finally:
            self.holding = False
            os.close(device)
            os.close(gate)

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Use the GPU with others, while no other process measures."""
        if self.holding:
            yield
            return
        gate, device = (os.open(path, os.O_RDWR | os.O_CREAT) for path in self.paths)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(device, fcntl.LOCK_SH)
            os.close(gate)
            yield
        finally:
            os.close(device)


def turns_of_device() -> Turns:
    """Return the turns of the GPU that this process sees."""
    return Turns(os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace(",", "_") or "none")
