"""What a device must offer inside the cage. One implementation each: `cpu_device`, `cuda_device`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Mapped(Protocol):
    """Judge-owned memory that this process can read now. Writing to it never changes the judge's copy.

    `calls` holds the tensors of each granted set, in the order of the grant's layouts; memory stays mapped as long as a
    tensor in it lives.
    """

    calls: list[list[torch.Tensor]]


class ChildDevice(Protocol):
    """The child's side of a device."""

    torch_device: torch.device

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> Mapped:
        """Map what the judge granted: `grant` is what the backend's `Grant.fields` says, `fds` its descriptors."""

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Where a tensor lies, so that the judge can read it: its layout and an "address" (CPU) or "handle" (CUDA)."""

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        """Copies where the judge may look again and again, until this is called again: a claim for each tensor's id.
        Empty where nothing is gained by that, or there is too much for it."""

    def poisoned(self, size: int) -> AbstractContextManager[None]:
        """While entered, memory that is allocated holds what nobody expects in it, as far as that can be had; so many
        bytes at least, if the device has room for them."""

    def trim_cache(self, share: float) -> None:
        """Give freed memory back to the device where more is kept than this share of all of it."""

    def finish(self) -> None:
        """Return once everything that this process has issued to the device is complete."""
