"""Let one process at a time have the GPU to itself, while others may compile.

Who measures holds the device's lock alone, who merely uses the GPU (autotuning) shares it.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator

from evaluator.devices.device_lock import device_lock

_WAIT_S = math.inf  # a process that waits too long is ended by its parent


class Turns:
    """This process's turns on the device of a name."""

    def __init__(self, name: str) -> None:
        self.holding = False
        self._key = f"anchors-{name}"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the GPU alone."""
        with device_lock(self._key, exclusive=True, timeout_s=_WAIT_S):
            self.holding = True
            try:
                yield
            finally:
                self.holding = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Use the GPU with others, while no other process measures."""
        if self.holding:
            yield
            return
        with device_lock(self._key, exclusive=False, timeout_s=_WAIT_S):
            yield


def turns_of_device() -> Turns:
    """Return the turns of the GPU that this process sees."""
    return Turns(os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace(",", "_") or "none")
