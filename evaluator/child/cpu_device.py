"""Map judge-owned memory on the CPU. It arrives as a file descriptor, for a copy-on-write or shared mapping."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.layout import TensorSpec

# Linux 5.14: map every page now, so that no page fault falls into a call. Older kernels map at the first access.
MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23
MADV_HUGEPAGE = 14
_PAGE_BYTES = 4096
# From malloc.h. New memory then holds 0xFE bytes (-1.7e38 as float32 and bfloat16, NaN as float16), freed memory 0x01.
_M_PERTURB, _PERTURB = -6, 0x01
FRESH_BYTE = 0xFF ^ _PERTURB


class CpuMapped:
    """One granted block. It stays mapped while any tensor in it lives."""

    def __init__(self, grant: Mapping[str, Any], fd: int) -> None:
        size = int(grant["bytes"])
        raw = map_shared(fd, size) if grant.get("shared") else _map_private(fd, size)
        specs = [TensorSpec.from_json(layout) for layout in grant["layouts"]]
        self.calls: list[list[torch.Tensor]] = []
        for index in range(int(grant.get("count", 1))):
            part = raw[index * int(grant["pitch"]) :] if index else raw
            self.calls.append([spec.with_own_storage(part) for spec in specs])


def _map_private(fd: int, size: int) -> torch.Tensor:
    block = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with contextlib.suppress(OSError):
        block.madvise(MADV_POPULATE_READ)
    return torch.frombuffer(block, dtype=torch.uint8)


def map_shared(fd: int, size: int) -> torch.Tensor:
    """Return a memory file's bytes as one uint8 tensor, with every page present and writable, in huge pages where the
    machine grants them.

    The mapping lasts while a view of it lives.
    """
    block = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with contextlib.suppress(OSError):
        block.madvise(MADV_HUGEPAGE)
    raw = torch.frombuffer(block, dtype=torch.uint8)
    try:
        block.madvise(MADV_POPULATE_WRITE)
    except OSError:  # before Linux 5.14; what is in the file stays
        raw[::_PAGE_BYTES].bitwise_or_(0)
    return raw


def touch_heap(size: int) -> None:
    """Have `size` bytes more in malloc's heap, every page of them present. The cage keeps malloc from giving them back,
    so later tensors need no new pages. Do nothing where there is too little memory."""
    with contextlib.suppress(RuntimeError, MemoryError):
        torch.empty(size, dtype=torch.uint8)[::_PAGE_BYTES].fill_(0)


class CpuDevice:
    """Implement `evaluator.child.device.ChildDevice` for a CPU."""

    torch_device = torch.device("cpu")

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> CpuMapped:
        return CpuMapped(grant, fds[0])

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        return {"address": tensor.data_ptr(), **TensorSpec.of(tensor).to_json()}

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        """Return nothing: the judge reads a process's memory at any address."""
        return {}

    @contextlib.contextmanager
    def poisoned(self, size: int) -> Iterator[None]:
        """Make malloc fill allocated and freed memory with unexpected bytes while entered."""
        del size  # it applies to all memory
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
        if mallopt is not None:
            mallopt(_M_PERTURB, _PERTURB)
        try:
            yield
        finally:
            if mallopt is not None:
                mallopt(_M_PERTURB, 0)

    def trim_cache(self, share: float) -> None:
        """Do nothing: freed memory is returned to the system, or small."""

    def finish(self) -> None:
        """Do nothing: a CPU has no asynchronous work, except that of threads that a Candidate started."""
