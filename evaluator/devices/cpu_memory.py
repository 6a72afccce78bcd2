"""Memory files that are shown to children on a CPU, and reads of a child's memory."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from evaluator.cage import mappings
from evaluator.child.protocol.chain import ROWS, Link
from evaluator.child.protocol.layout import LayoutError, TensorSpec, pack
from evaluator.errors import CageError
from evaluator.sandbox.process import ChildProcess

_PAGE = 4096
_SEALINGS = 40
_BEHIND = b"\xff"  # a NaN in floats of any width, -1 in integers
_MAX_TENSOR_BYTES = 2 << 30
_MAX_SPREAD_BYTES = 256 << 20


class CpuGrant:
    """A memory file that holds `count` sets of tensors, `pitch` bytes apart. A `shared` one is for one child alone, and
    its writes are seen here. Any other is sealed, so that each child writes into pages of its own."""

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]], *, shared: bool = False) -> None:
        self.specs, self.pitch = _pitched(calls)
        total = self.pitch * max(1, len(calls))
        self._fd = memory_file("inputs", total)
        _fill_gaps(self._fd, self.pitch, self.specs, len(calls))
        write_calls(self._fd, self.pitch, self.specs, calls)
        if not shared:  # the seal still allows private (copy-on-write) mappings
            _seal(self._fd)
        self.fds = (self._fd,)
        self.fields: dict[str, Any] = {
            "bytes": total,
            "layouts": [spec.to_json() for spec in self.specs],
            "pitch": self.pitch,
            "count": len(calls),
            "shared": shared,
        }

    def read_back(self) -> list[list[torch.Tensor]]:
        return read_calls(self._fd, self.pitch, self.specs, self.fields["count"])

    def mark_aliases(self, child: ChildProcess, claims: Sequence[dict[str, Any]]) -> None:
        mark_aliases(child, self._fd, claims)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _seal(fd: int) -> None:
    """Forbid all writes to a memory file. The kernel refuses while it holds one of the file's pages, to move it, say,
    after waiting 0.15 s; then try again. Raise CageError, with the file closed, where it never succeeds."""
    for _ in range(_SEALINGS):
        try:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        else:
            return
    os.close(fd)
    raise CageError(f"the kernel does not seal a memory file: its pages were in use {_SEALINGS} times")


class SharedGrant(CpuGrant):
    """A grant that is kept for the next child that is shown the same calls; never for one that runs a Candidate."""

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        super().__init__(calls)
        self.calls = calls

    def close(self) -> None:
        """Do nothing; it stays open until `free`."""

    def free(self) -> None:
        super().close()


class Staged:
    """The memory file of one child's rounds, mapped there ahead of time. It is written while the child is stopped, or,
    for single calls, while the child waits for the next.

    The child's writes to it cannot affect the judge, which keeps copies elsewhere.
    """

    def __init__(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> None:
        self.specs, self.pitch = _pitched(calls)
        self.capacity = len(calls)
        self._link_start = self.pitch * max(1, self.capacity)
        self.bytes = self._link_start + _link_bytes(link)
        self.fd = memory_file("inputs", self.bytes)
        _fill_gaps(self.fd, self.pitch, self.specs, self.capacity)

    def fits(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> bool:
        specs, _ = _pitched(calls)
        return (
            specs == self.specs and len(calls) <= self.capacity and self._link_start + _link_bytes(link) <= self.bytes
        )

    def fields(self, count: int, link: Link | None) -> dict[str, Any]:
        """Return the request fields that locate the inputs of `count` calls and the coefficients."""
        return {
            "layouts": [spec.to_json() for spec in self.specs],
            "pitch": self.pitch,
            "count": count,
            "link": None if link is None else link.to_json(self._link_layout(link)),
        }

    def write(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None) -> None:
        """Write inputs and coefficients, while the child is stopped."""
        write_calls(self.fd, self.pitch, self.specs, calls)
        if link is not None:
            _write(self.fd, 0, [self._link_layout(link)], [link.coefficients])

    def write_call(self, index: int, tensors: Sequence[torch.Tensor]) -> None:
        """Write one call's inputs; the child sees them at once."""
        _write(self.fd, index * self.pitch, self.specs, tensors)

    def _link_layout(self, link: Link) -> TensorSpec:
        return TensorSpec.of(link.coefficients, self._link_start)

    def read(self, count: int) -> list[list[torch.Tensor]]:
        """Return the inputs of the first calls as they are now."""
        return read_calls(self.fd, self.pitch, self.specs, count)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def memory_file(name: str, size: int) -> int:
    """Return a descriptor of an empty memory file of a fixed size."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def _fill_gaps(fd: int, pitch: int, specs: Sequence[TensorSpec], count: int) -> None:
    """Fill the bytes behind each tensor with a pattern that is not zero: a kernel that reads too far might count zeros
    in and be right."""
    starts = [spec.offset for spec in specs] + [pitch]
    gaps = [(spec.offset + spec.span_bytes, start) for spec, start in zip(specs, starts[1:], strict=True)]
    for index in range(count):
        for low, high in gaps:
            os.pwrite(fd, _BEHIND * (high - low), index * pitch + low)


def write_calls(fd: int, pitch: int, specs: Sequence[TensorSpec], calls: Sequence[Sequence[torch.Tensor]]) -> None:
    for index, tensors in enumerate(calls):
        _write(fd, index * pitch, specs, tensors)


def read_calls(fd: int, pitch: int, specs: Sequence[TensorSpec], count: int) -> list[list[torch.Tensor]]:
    """Return the tensors of the first `count` calls as they are now."""
    return [[_read(fd, index * pitch, spec) for spec in specs] for index in range(count)]


def _read(fd: int, start: int, spec: TensorSpec) -> torch.Tensor:
    raw = torch.empty(max(1, spec.span_bytes), dtype=torch.uint8)
    view, done = memoryview(raw.numpy().data)[: spec.span_bytes], 0
    while done < spec.span_bytes:
        done += os.preadv(fd, [view[done:]], start + spec.offset + done)
    return TensorSpec(spec.shape, spec.stride, spec.dtype).view(raw)


def mark_aliases(child: ChildProcess, fd: int, claims: Sequence[dict[str, Any]]) -> None:
    """Set "alias" in each claim to whether any byte of its tensor lies in a mapping that the child has of the memory
    file. The kernel tells, not the child. Raise LayoutError."""
    spans = [(_address(claim), _span_bytes(claim)) for claim in claims]
    try:
        found = mappings.meet_file(child.pid, fd, spans)
    except OSError as error:
        raise LayoutError(f"the child's mappings cannot be read: {error}") from error
    for claim, alias in zip(claims, found, strict=True):
        claim["alias"] = alias and type(claim.get("address")) is int


def _address(claim: Mapping[str, Any]) -> int:
    address = claim.get("address")
    return address if type(address) is int else 0


def _span_bytes(claim: Mapping[str, Any]) -> int:
    """Return the bytes from a tensor's first element to its last; 0 for one without strides, which is not read."""
    return 0 if "type" in claim else TensorSpec.from_json({**claim, "offset": 0}).span_bytes


def read_claim(child: ChildProcess, claim: Mapping[str, Any]) -> torch.Tensor:
    """Return a private copy of a claimed tensor. Its address may be anything: only the child's own memory is read."""
    spec = TensorSpec.from_json(claim if claim.get("offset", 0) == 0 else {**claim, "offset": 0})
    address = claim.get("address")
    if spec.span_bytes > _MAX_TENSOR_BYTES:
        raise LayoutError(f"a tensor of {spec.span_bytes} bytes")
    if spec.is_sparse and spec.span_bytes > _MAX_SPREAD_BYTES:
        raise LayoutError(f"a tensor whose elements lie scattered over {spec.span_bytes} bytes")
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
    """Write through the descriptor: cheaper than faulting in every page of a mapping."""
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
