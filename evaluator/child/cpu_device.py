"""The CPU inside the cage: judge-owned memory arrives as a file descriptor and is mapped copy-on-write."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Mapping
from typing import Any

import torch

from evaluator.child.spec import TensorSpec

# Linux 5.14: map every page now, so that no page fault falls into a call. An older kernel does it at the first touch.
_MADV_POPULATE_READ, _MADV_POPULATE_WRITE = 22, 23


class CpuMapped:
    """One granted block. It stays mapped as long as any tensor in it lives."""

    def __init__(self, grant: Mapping[str, Any], fd: int) -> None:
        size = int(grant["bytes"])
        block = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        with contextlib.suppress(OSError):
            block.madvise(_MADV_POPULATE_READ)
        raw = torch.frombuffer(block, dtype=torch.uint8)
        self.address: int | None = raw.data_ptr()
        specs = [TensorSpec.from_json(layout) for layout in grant["layouts"]]
        self.calls: list[list[torch.Tensor]] = []
        for index in range(int(grant.get("count", 1))):
            part = raw[index * int(grant["pitch"]) :] if index else raw
            self.calls.append([spec.view(part) for spec in specs])


def map_shared(fd: int, size: int) -> torch.Tensor:
    """A memory file's bytes as one uint8 tensor, every page present and writable; mapped as long as a view lives."""
    block = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with contextlib.suppress(OSError):
        block.madvise(_MADV_POPULATE_WRITE)
    return torch.frombuffer(block, dtype=torch.uint8)


class CpuDevice:
    """See `evaluator.child.device.ChildDevice`."""

    torch_device = torch.device("cpu")

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> CpuMapped:
        return CpuMapped(grant, fds[0])

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        return {"address": tensor.data_ptr(), **TensorSpec.of(tensor).to_json()}

    def finish(self) -> None:
        """Nothing runs behind the caller's back on a CPU, except what a Candidate started itself."""
