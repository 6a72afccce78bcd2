"""Describe as JSON where a tensor lies in memory and how it is laid out, for judge and child.

A *layout* is {"offset": bytes from the block's start, "shape": [...], "stride": [...], "dtype": "bfloat16"}; strides
count elements. A *tree* writes a value made of lists, tuples, dicts, scalars, dtypes and tensors as JSON. Each tensor
is replaced by its position in a list that is sent along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import torch

ALIGNMENT = 64
_MAX_ELEMENTS = 1 << 40
_MAX_TREE = 10_000
_SPARSE, _SPARSE_BYTES = 4, 1 << 20
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # integers by bytes


# torch converts, copies and compares all of these; others (int4, float4_e2m1fn_x2, complex32, quint8) it only stores.
JUDGED_DTYPES = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float64", "float32", "float16", "bfloat16", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
))  # fmt: skip


class LayoutError(ValueError):
    """A layout or a tree that makes no sense."""


class UnjudgedTensorError(LayoutError):
    """A reference's tensor of a layout or dtype that is not judged, or a result that cannot be compared. The text names
    its place and what to do."""


def dtype_named(name: str) -> torch.dtype:
    """Return torch.bfloat16 for "bfloat16". Raise LayoutError for a name that is no dtype."""
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise LayoutError(f"{str(name)[:40]!r} is no dtype")
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The layout of one strided tensor. `offset` is in bytes from the start of its block, `stride` in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    offset: int = 0

    @property
    def torch_dtype(self) -> torch.dtype:
        return dtype_named(self.dtype)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def span_bytes(self) -> int:
        """Return the bytes from the first to the last element, both included; 0 for an empty tensor."""
        return _span_bytes(self.shape, self.stride, self.dtype)

    @classmethod
    def of(cls, tensor: torch.Tensor, offset: int = 0) -> TensorSpec:
        return cls(tuple(tensor.shape), tuple(tensor.stride()), dtype_name(tensor.dtype), offset)

    @property
    def is_sparse(self) -> bool:
        """Return true if the elements lie so far apart that reading the span costs much more than it is worth."""
        return self.span_bytes > _SPARSE * self.numel * self.torch_dtype.itemsize + _SPARSE_BYTES

    def to_json(self) -> dict[str, Any]:
        return {"offset": self.offset, "shape": list(self.shape), "stride": list(self.stride), "dtype": self.dtype}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TensorSpec:
        """Read a layout from another process.

        Raise LayoutError for anything but non-negative ints and a known dtype.
        """
        shape, stride, offset = data.get("shape"), data.get("stride"), data.get("offset", 0)
        if not isinstance(shape, list | tuple) or not isinstance(stride, list | tuple):
            raise LayoutError("a shape is a short list")
        try:
            return _checked(tuple(shape), tuple(stride), data.get("dtype", ""), offset)
        except TypeError as error:  # an unhashable value is no number
            raise LayoutError(f"sizes {str(shape)[:80]}") from error

    def view(self, raw: torch.Tensor) -> torch.Tensor:
        """Return this tensor inside `raw` (uint8, one axis, aligned). Raise LayoutError if it does not fit."""
        self._check_fits(raw)
        if self.numel == 0:
            return torch.empty(self.shape, dtype=self.torch_dtype, device=raw.device)
        return (
            raw[self.offset : self.offset + self.span_bytes].view(self.torch_dtype).as_strided(self.shape, self.stride)
        )

    def with_own_storage(self, raw: torch.Tensor) -> torch.Tensor:
        """Return the same tensor in a storage that ends where it does, like that of a newly made tensor.

        A tensor that does not begin where allocations do is a slice of one that does.
        """
        self._check_fits(raw)
        if self.numel == 0:
            return self.view(raw)
        before, end = self.offset % ALIGNMENT, int(raw.storage_offset()) + self.offset + self.span_bytes
        storage = raw.untyped_storage()[end - self.span_bytes - before : end]
        skipped = before // self.torch_dtype.itemsize
        return torch.empty(0, dtype=self.torch_dtype, device=raw.device).set_(storage, skipped, self.shape, self.stride)

    def _check_fits(self, raw: torch.Tensor) -> None:
        if self.offset + self.span_bytes > raw.numel() or self.offset % self.torch_dtype.itemsize:
            raise LayoutError(f"bytes {self.offset} to {self.offset + self.span_bytes} of a block of {raw.numel()}")


@lru_cache(maxsize=4096)
def _span_bytes(shape: tuple[int, ...], stride: tuple[int, ...], dtype: str) -> int:
    if 0 in shape:
        return 0
    steps = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    return (steps + 1) * dtype_named(dtype).itemsize


@lru_cache(maxsize=4096)
def _checked(shape: tuple[Any, ...], stride: tuple[Any, ...], dtype: Any, offset: Any) -> TensorSpec:
    """Return the layout of these values. It is cached, because thousands of calls return the same.

    Of equal keys (1 and 1.0) the first one counts, which holds plain ints in any case.
    """
    shape, stride = _sizes(shape), _sizes(stride)
    (offset,) = _sizes([offset])
    if len(shape) != len(stride) or math.prod(shape) > _MAX_ELEMENTS:
        raise LayoutError(f"shape {shape} with stride {stride}")
    spec = TensorSpec(shape, stride, dtype_name(dtype_named(dtype)), offset)
    if spec.span_bytes > _MAX_ELEMENTS:
        raise LayoutError(f"shape {shape} with stride {stride} spans more memory than exists")
    return spec


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) > 64:
        raise LayoutError("a shape is a short list")
    if any(type(n) is not int or not 0 <= n <= _MAX_ELEMENTS for n in value):
        raise LayoutError(f"sizes {str(value)[:80]}")
    return tuple(value)


def pack(tensors: Sequence[torch.Tensor], alignment: int = ALIGNMENT) -> tuple[list[TensorSpec], int]:
    """Return layouts that put tensors one after the other, strides kept, each aligned; and the bytes that they need."""
    specs, end = [], 0
    for tensor in tensors:
        start = -(-end // alignment) * alignment
        if not tensor.is_contiguous():  # a slice may start elsewhere than an allocation does
            start += int(tensor.storage_offset()) * tensor.element_size() % alignment
        spec = TensorSpec.of(tensor, start)
        specs.append(spec)
        end = start + spec.span_bytes
    return specs, max(end, 1)


def overwrite(tensor: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Copy `source` into a tensor, and return the tensor. Of elements that share one place in memory the last one in
    row-major order wins."""
    moved, once = source.expand(tensor.shape), tensor
    for axis, step in enumerate(tensor.stride()):
        if step == 0 and tensor.shape[axis] > 1:
            once, moved = once.narrow(axis, 0, 1), moved.narrow(axis, tensor.shape[axis] - 1, 1)
    if not may_overlap(once):
        once.copy_(moved)
        return tensor
    span = TensorSpec.of(once).span_bytes // once.element_size()
    places = torch.arange(span, device=once.device).as_strided(once.shape, once.stride()).reshape(-1)
    order = torch.arange(len(places), device=once.device)
    last = torch.full((span,), -1, device=once.device).scatter_reduce_(0, places, order, "amax")
    held = last >= 0
    source = moved.to(once.device, once.dtype).reshape(-1)[last[held]]
    word = WORDS.get(once.element_size(), once.dtype)  # torch does not put single numbers of every dtype
    once.as_strided((span,), (1,)).view(word)[held] = source.view(word)
    return tensor


def may_overlap(tensor: torch.Tensor) -> bool:
    """Return true unless the strides alone show that all elements lie in places of their own."""
    extent = 1
    for step, size in sorted(
        (step, size) for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    ):
        if step < extent:
            return tensor.numel() > 0
        extent += (size - 1) * step
    return False


def write_tree(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return JSON for `value`, and append its tensors to `tensors`.

    Raise LayoutError for a value without a JSON form.
    """
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, Enum):  # some are numbers or texts, and forward may ask which member it gets
        raise LayoutError(f"a member of {type(value).__name__} cannot be handed over; use its value")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, list | tuple):
        name = "tuple" if isinstance(value, tuple) else "list"
        return {name: [write_tree(item, tensors) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: write_tree(item, tensors) for key, item in value.items()}}
    kind = f"{type(value).__name__}{' with keys that are no strings' if isinstance(value, dict) else ''}"
    raise LayoutError(f"a {kind} cannot be handed over; use tensors, numbers, strings, lists, dicts")


def read_tree(data: Any, tensor: Callable[[int], torch.Tensor]) -> Any:
    """Return the value that `write_tree` wrote; `tensor(i)` gives tensor i. Raise LayoutError."""
    if data is None or isinstance(data, bool | int | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise LayoutError("a malformed tree")
    ((kind, body),) = data.items()
    if kind == "tensor" and type(body) is int:
        return tensor(body)
    if kind == "float" and isinstance(body, str):
        return float.fromhex(body)
    if kind == "dtype":
        return dtype_named(body)
    if kind in ("list", "tuple") and isinstance(body, list) and len(body) <= _MAX_TREE:
        items = [read_tree(item, tensor) for item in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict" and isinstance(body, dict):
        return {key: read_tree(item, tensor) for key, item in body.items()}
    raise LayoutError("a malformed tree")


def tensor_places(data: Any) -> list[int]:
    """Return the positions of a tree's tensors. Raise LayoutError."""
    found: list[int] = []

    def note(place: int) -> torch.Tensor:
        found.append(place)
        return torch.empty(0)

    read_tree(data, note)
    return found
