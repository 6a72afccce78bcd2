"""Memory files that the judge shows to children of a CPU, and reading what a child returned out of its memory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from evaluator.child.chain import ROWS, Link
from evaluator.child.spec import LayoutError, TensorSpec, pack
from evaluator.process import ChildProcess

_PAGE = 4096
_MAX_TENSOR_BYTES = 2 << 30


class CpuGrant:
    """A memory file that holds `count` sets of tensors, `pitch` bytes apart; sealed against being changed."""

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        self.specs, self.pitch = _pitched(calls)
        total = self.pitch * max(1, len(calls))
        self._fd = memory_file("inputs", total)
        write_calls(self._fd, self.pitch, self.specs, calls)
        # A write seal still allows private (copy-on-write) mappings, which is how children map it.
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        self.fds = (self._fd,)
        self.fields: dict[str, Any] = {
            "bytes": total,
            "layouts": [spec.to_json() for spec in self.specs],
            "pitch": self.pitch,
            "count": len(calls),
        }

    def read_back(self, child: ChildProcess, address: int | None) -> list[list[torch.Tensor]]:
        if address is None:
            raise LayoutError("the child does not say where its inputs are")
        places = [address + index * self.pitch for index in range(self.fields["count"])]
        return [
            [read_claim(child, {**spec.to_json(), "address": place + spec.offset}) for spec in self.specs]
            for place in places
        ]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SharedGrant(CpuGrant):
    """One that is kept for the next child that is shown the very same calls; never for one that runs a Candidate."""

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        super().__init__(calls)
        self.calls = calls

    def close(self) -> None:
        """Stays open until `free`."""

    def free(self) -> None:
        super().close()


class Staged:
    """The memory file of one child's rounds, mapped there ahead of time: written only while the child is stopped.

    What the child writes into it reaches nothing that the judge relies on: its own copies are elsewhere.
    """

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> None:
        self.specs, self.pitch = _pitched(calls)
        self.room = len(calls)
        self._link_start = self.pitch * max(1, self.room)
        self.bytes = self._link_start + _link_bytes(link)
        self.fd = memory_file("inputs", self.bytes)

    def fits(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> bool:
        specs, _ = _pitched(calls)
        return specs == self.specs and len(calls) <= self.room and self._link_start + _link_bytes(link) <= self.bytes

    def write(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> dict[str, Any]:
        """Put inputs and coefficients in; what the child has to be told to find them."""
        write_calls(self.fd, self.pitch, self.specs, calls)
        told = {
            "layouts": [spec.to_json() for spec in self.specs],
            "pitch": self.pitch,
            "count": len(calls),
            "link": None,
        }
        if link is None:
            return told
        layout = TensorSpec.of(link.coefficients, self._link_start)
        _write(self.fd, 0, [layout], [link.coefficients])
        return {**told, "link": link.to_json(layout)}

    def read(self, count: int) -> list[list[torch.Tensor]]:
        """What lies in the inputs of the first calls now."""
        return [[self._read(index * self.pitch, spec) for spec in self.specs] for index in range(count)]

    def _read(self, start: int, spec: TensorSpec) -> torch.Tensor:
        raw = torch.empty(max(1, spec.span_bytes), dtype=torch.uint8)
        view, done = memoryview(raw.numpy().data)[: spec.span_bytes], 0
        while done < spec.span_bytes:
            done += os.preadv(self.fd, [view[done:]], start + spec.offset + done)
        return TensorSpec(spec.shape, spec.stride, spec.dtype).view(raw)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def memory_file(name: str, size: int) -> int:
    """A descriptor of an empty memory file, of a size that nobody can change."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def write_calls(fd: int, pitch: int, specs: Sequence[TensorSpec], calls: Sequence[Sequence[torch.Tensor]]) -> None:
    for index, tensors in enumerate(calls):
        _write(fd, index * pitch, specs, tensors)


def read_claim(child: ChildProcess, claim: Mapping[str, Any]) -> torch.Tensor:
    """A private copy of a claimed tensor. Its address may be anything: only the child's own memory is read."""
    spec = TensorSpec.from_json({**claim, "offset": 0})
    address = claim.get("address")
    if spec.span_bytes > _MAX_TENSOR_BYTES:
        raise LayoutError(f"a tensor of {spec.span_bytes} bytes")
    if type(address) is not int or not 0 <= address < 1 << 63:
        raise LayoutError("a claim without an address")
    raw = torch.empty(max(1, spec.span_bytes), dtype=torch.uint8)
    if spec.span_bytes:
        try:
            child.read_memory(address, memoryview(raw.numpy().data)[: spec.span_bytes])
        except OSError as error:
            raise LayoutError(f"no memory at the claimed address: {error}") from error
    return spec.view(raw)


def _link_bytes(link: Link | None) -> int:
    return 0 if link is None else ROWS * 8 * link.coefficients.shape[1]


def _pitched(calls: Sequence[Sequence[torch.Tensor]]) -> tuple[list[TensorSpec], int]:
    specs, size = pack(calls[0] if calls else [])
    return specs, -(-size // _PAGE) * _PAGE


def _write(fd: int, start: int, specs: Sequence[TensorSpec], tensors: Sequence[torch.Tensor]) -> None:
    """Written through the descriptor: cheaper than faulting every page of a mapping in."""
    for spec, tensor in zip(specs, tensors, strict=True):
        if (spec.shape, spec.stride) != (tuple(tensor.shape), tuple(tensor.stride())):
            raise LayoutError("the calls of a round have equal layouts")
        if spec.span_bytes == 0:
            continue
        span = tensor.as_strided((spec.span_bytes // tensor.element_size(),), (1,))
        data = memoryview(span.view(torch.uint8).numpy().data)
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], start + spec.offset + done)
