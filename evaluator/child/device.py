"""Define the interface of a device inside the cage. Implementations: `cpu_device`, `gpu.device`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Mapped(Protocol):
    """Judge-owned memory that this process can read. Writing to it never changes the judge's copy.

    `calls` holds the tensors of each granted set, in the order of the grant's layouts. Memory stays mapped while a
    tensor in it lives.
    """

    calls: list[list[torch.Tensor]]


class ChildDevice(Protocol):
    """The child's side of a device."""

    torch_device: torch.device

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> Mapped:
        """Map what the judge granted. `grant` comes from the backend's `Grant.fields`, `fds` are its descriptors."""

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Return a tensor's layout and its "address" (CPU) or "handle" (CUDA), so that the judge can read it."""

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        """Copy tensors to memory that the judge may read repeatedly, until the next call. Return a claim by tensor id.

        Return an empty dict if that gains nothing, or if there is too much to copy.
        """

    def poisoned(self, size: int) -> AbstractContextManager[None]:
        """Fill newly allocated memory with unexpected values while entered, at least `size` bytes if there is room."""

    def trim_cache(self, share: float) -> None:
        """Return freed memory to the device if more than this share of the device's memory is cached."""

    def finish(self) -> None:
        """Return once all work that this process has issued to the device is complete."""
