"""The child's side of an NVIDIA GPU: opens what the judge granted, says where its tensors lie, waits for all work."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from evaluator.child.chain import Link
from evaluator.child.cuda_driver import DeviceBytes, Driver, DriverError
from evaluator.child.spec import TensorSpec

_POISONED_BLOCKS, _POISONED_BYTES = 32, 256 << 20


class NotItsOwn(RuntimeError):
    """An output lies in memory that this process did not allocate: an input, or a view of one."""


class _Opened:
    """A block of the judge's, mapped as long as this object lives (the tensors in it hold it)."""

    def __init__(self, driver: Driver, handle: str) -> None:
        self._driver = driver
        self.address = driver.open(handle)
        _, self.size = driver.address_range(self.address)

    def __del__(self) -> None:
        with contextlib.suppress(DriverError, AttributeError, TypeError):  # at exit anything may be gone already
            self._driver.close(self.address)


class CudaMapped:
    """Tensors in the judge's exported block. What is written there reaches neither its own copy nor what it expects."""

    def __init__(self, driver: Driver, grant: Mapping[str, Any]) -> None:
        block = _Opened(driver, grant["handle"])
        raw = torch.as_tensor(DeviceBytes(block.address, block.size, owner=block), device="cuda")
        self._raw = raw
        specs = [TensorSpec.from_json(layout) for layout in grant["layouts"]]
        self.calls: list[list[torch.Tensor]] = []
        for index in range(int(grant.get("count", 1))):
            part = raw[index * int(grant["pitch"]) :] if index else raw
            self.calls.append([spec.view(part) for spec in specs])

    def link(self, data: Mapping[str, Any] | None) -> Link | None:
        """The chain whose coefficients lie in this block, or None where there is none."""
        return None if data is None else Link.from_json(data, self._raw)


class CudaDevice:
    """The one GPU that the cage shows, whatever its ordinal is outside. Creates the CUDA context."""

    def __init__(self, ordinal: int = 0) -> None:
        del ordinal
        self.torch_device = torch.device("cuda", torch.cuda.current_device())
        torch.cuda.current_stream().synchronize()
        self._driver = Driver(0)

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> CudaMapped:
        """Map a block by its handle; CUDA needs no descriptors."""
        del fds
        return CudaMapped(self._driver, grant)

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        """The tensor's layout in the allocation that it lies in, and that allocation's handle (None when empty).

        Raises NotItsOwn for memory of another process: an output that is an input cannot be handed over.
        """
        if tensor.numel() == 0:
            return {**TensorSpec.of(tensor).to_json(), "handle": None}
        base, _ = self._driver.address_range(tensor.data_ptr())
        try:
            handle = self._driver.export(base)
        except DriverError as error:
            raise NotItsOwn(f"an output lies in memory that is not the module's own (an input?): {error}") from error
        return {**TensorSpec.of(tensor, tensor.data_ptr() - base).to_json(), "handle": handle}

    @contextlib.contextmanager
    def poisoned(self) -> Iterator[None]:
        """Torch's allocator hands freed blocks out again: leave some full of NaN, small ones and a large one."""
        with contextlib.suppress(torch.OutOfMemoryError):
            made = [torch.full((1 << 17,), math.nan, device=self.torch_device) for _ in range(_POISONED_BLOCKS)]
            made.append(torch.full((_POISONED_BYTES // 4,), math.nan, device=self.torch_device))
            del made
        yield

    def spare(self, share: float) -> None:
        """Giving back and asking again takes a millisecond for every block."""
        if torch.cuda.memory_reserved() > share * torch.cuda.get_device_properties(self.torch_device).total_memory:
            torch.cuda.empty_cache()

    def finish(self) -> None:
        """Wait for every stream of this process, torch's and others'."""
        self._driver.synchronize()
