"""Serve an NVIDIA GPU inside a child: open granted memory, tell where tensors lie, wait for all work."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.chain import Link
from evaluator.child.protocol.cuda_driver import ALIGNMENT, DeviceBytes, Driver, DriverError, round_to_blocks
from evaluator.child.protocol.layout import TensorSpec, overwrite, pack

_POISONED_BLOCKS, _POISONED_BYTES, _POISONED_SHARE = 32, 256 << 20, 1 / 64
_MOST_SHARE = 3 / 4  # of the device's memory: if a Candidate filled it, nothing could be compared or timed
_SETTLED_SHARE = 1 / 64  # of the device's memory, for copies that the judge reads repeatedly


class NotExportable(RuntimeError):
    """An output lies in memory that the judge cannot open: neither this process nor the judge allocated it."""


class _Opened:
    """A block of the judge's, mapped while this object lives (the tensors in it hold it)."""

    def __init__(self, driver: Driver, handle: str) -> None:
        self._driver, self.handle = driver, handle
        self.address = driver.open(handle)
        _, self.size = driver.address_range(self.address)

    def __del__(self) -> None:
        with contextlib.suppress(DriverError, AttributeError, TypeError):  # at exit anything may be gone
            self._driver.close(self.address)


class CudaMapped:
    """Tensors in the judge's exported block.

    Writes there reach neither the judge's own copy nor its expected outputs.
    """

    def __init__(self, driver: Driver, grant: Mapping[str, Any]) -> None:
        self.block = block = _Opened(driver, grant["handle"])
        raw = torch.as_tensor(DeviceBytes(block.address, block.size, owner=block), device="cuda")
        self._raw = raw
        specs = [TensorSpec.from_json(layout) for layout in grant["layouts"]]
        self.calls: list[list[torch.Tensor]] = []
        for index in range(int(grant.get("count", 1))):
            part = raw[index * int(grant["pitch"]) :] if index else raw
            self.calls.append([spec.with_own_storage(part) for spec in specs])

    def link(self, data: Mapping[str, Any] | None) -> Link | None:
        """Return the chain that has its coefficients in this block, or None."""
        return None if data is None else Link.from_json(data, self._raw)


class CudaDevice:
    """The one GPU that the cage shows, under any ordinal outside. It creates the CUDA context."""

    def __init__(self, ordinal: int = 0) -> None:
        del ordinal
        self.torch_device = torch.device("cuda", torch.cuda.current_device())
        torch.cuda.current_stream().synchronize()
        torch.cuda.set_per_process_memory_fraction(_MOST_SHARE)
        self._driver = Driver(0)
        self._total_bytes = torch.cuda.get_device_properties(self.torch_device).total_memory
        self._granted: weakref.WeakValueDictionary[int, _Opened] = weakref.WeakValueDictionary()
        self._lasting: torch.Tensor | None = None
        self._handle = ""
        self._load_kernels()

    def _load_kernels(self) -> None:
        """Load the kernels that every first call needs: each takes milliseconds."""
        with self.poisoned(0):
            made = torch.ones(64, device=self.torch_device)
            made.copy_(made + made)
        self.finish()

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> CudaMapped:
        """Map a block by its handle. CUDA needs no descriptors."""
        del fds
        mapped = CudaMapped(self._driver, grant)
        self._granted[mapped.block.address] = mapped.block
        return mapped

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Return the tensor's layout in its allocation, and the allocation's handle (None when empty).

        An input or a view of one has the granted handle. Raise NotExportable for other processes' memory.
        """
        if tensor.numel() == 0:
            return {**TensorSpec.of(tensor).to_json(), "handle": None}
        base, _ = self._driver.address_range(tensor.data_ptr())
        granted = self._granted.get(base)
        handle = granted.handle if granted is not None else self._export(base)
        return {**TensorSpec.of(tensor, tensor.data_ptr() - base).to_json(), "handle": handle}

    def _export(self, base: int) -> str:
        try:
            return self._driver.export(base)
        except DriverError as error:
            reason = f"an output lies in memory that cannot be read: return a copy of it ({error})"
            raise NotExportable(reason) from error

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        """Copy tensors into one block that is never freed.

        A driver needs half a millisecond to export one block to another process, and torch's allocator has a block for
        every large tensor.
        """
        filled = [tensor for tensor in tensors if tensor.numel()]
        if any(step == 0 < size - 1 for t in filled for size, step in zip(t.shape, t.stride(), strict=True)):
            return {}  # overlapping elements cannot be copied to
        specs, size = pack(filled, ALIGNMENT)
        raw = self._room_for(size)
        if raw is None:
            return {}
        for tensor, spec in zip(filled, specs, strict=True):
            overwrite(spec.view(raw), tensor)
        self.finish()
        lies = {"handle": self._handle, "lasting": True}
        return {id(tensor): {**spec.to_json(), **lies} for tensor, spec in zip(filled, specs, strict=True)}

    def _room_for(self, size: int) -> torch.Tensor | None:
        """Return `size` bytes in a block that stays in place.

        A block that became too small is not freed before this process ends: the judge may have it open.
        """
        known = 0 if self._lasting is None else self._lasting.numel()
        if size > known:
            most = int(_SETTLED_SHARE * self._total_bytes)
            wanted = round_to_blocks(max(size, min(2 * known, most)))
            if wanted > most:
                return None
            try:
                address = self._driver.allocate(wanted)
                self._handle = self._driver.export(address)
            except DriverError:
                return None
            self._lasting = torch.as_tensor(DeviceBytes(address, wanted), device="cuda")
        return self._lasting

    @contextlib.contextmanager
    def poisoned(self, size: int) -> Iterator[None]:
        """Leave freed blocks in torch's allocator that are full of NaN: small ones and a large one.

        Large results are cut from the large one, so the judge opens one block and not one for each.
        """
        large = max(_POISONED_BYTES, min(size, int(_POISONED_SHARE * self._total_bytes)))
        with contextlib.suppress(torch.OutOfMemoryError):
            made = [torch.full((1 << 17,), math.nan, device=self.torch_device) for _ in range(_POISONED_BLOCKS)]
            made.append(torch.full((large // 4,), math.nan, device=self.torch_device))
            del made
        yield

    def trim_cache(self, share: float) -> None:
        """Empty torch's cache if it is too large. Returning and reallocating takes a millisecond per block."""
        if reserved_bytes(self.torch_device)[0] > share * self._total_bytes:
            torch.cuda.empty_cache()

    def finish(self) -> None:
        """Wait for every stream of this process, torch's and others'."""
        self._driver.synchronize()


def reserved_bytes(device: torch.device) -> tuple[int, int]:
    """Return the bytes that torch's allocator has reserved, and those of them in use.

    `torch.cuda.memory_reserved` and `memory_allocated` take half a millisecond to sort all statistics.
    """
    told = torch.cuda.memory_stats_as_nested_dict(device)
    reserved, allocated = (told.get(f"{kind}_bytes", {}).get("all", {}) for kind in ("reserved", "allocated"))
    return int(reserved.get("current", 0)), int(allocated.get("current", 0))
