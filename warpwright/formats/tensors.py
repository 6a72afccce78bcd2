"""Tensors in files of the safetensors format, read without torch, and the recipes that stand for them."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from warpwright.formats.base import CannotImport

_DTYPES = {
    "I64": ("int64", "q"), "I32": ("int32", "i"), "I16": ("int16", "h"), "I8": ("int8", "b"), "U8": ("uint8", "B"),
    "BOOL": ("bool", "?"), "F64": ("float64", "d"), "F32": ("float32", "f"), "F16": ("float16", "e"),
    "BF16": ("bfloat16", ""), "F8_E4M3": ("float8_e4m3fn", ""), "F8_E5M2": ("float8_e5m2", ""),
}  # fmt: skip
_MOST_HEADER = 16 << 20
_MOST_EMBEDDED = 64 << 10  # bytes of text for the values of one tensor
_MOST_READ = 64 << 20
_SAMPLED = 1 << 16  # elements for a mean and a spread


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file: Python that makes it, by name of torch dtype and shape."""

    dtype: str
    shape: tuple[int, ...]
    recipe: str


def read(path: Path, key: str) -> Stored:
    """Return a tensor: whole numbers as they are, floats as draws with their mean and spread. Raises CannotImport."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MOST_HEADER:
                raise CannotImport(f"{path.name} is no safetensors file (its header is too long)")
            header = json.loads(file.read(length))
            entry = header.get(key) if isinstance(header, dict) else None
            if not isinstance(entry, dict):
                raise CannotImport(f"{path.name} has no tensor {key!r}")
            kind, shape, (start, end) = entry["dtype"], tuple(map(int, entry["shape"])), entry["data_offsets"]
            if not 0 <= start <= end:
                raise ValueError(f"{key} ends before it starts")
            if kind not in _DTYPES:
                raise CannotImport(f"{path.name}: {key} has the dtype {kind}, which is not supported")
            dtype, code = _DTYPES[kind]
            if end - start > _MOST_READ and not dtype.startswith(("float", "bfloat")):
                raise CannotImport(_too_large(path, key, end - start))
            file.seek(8 + length + start)
            data = file.read(min(end - start, _MOST_READ))
    except OSError as error:
        raise CannotImport(f"{path}: {error.strerror or error}; fetch the data set's blobs (git lfs pull)") from error
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise CannotImport(f"{path.name} is no safetensors file, or only a pointer to one (git lfs pull)") from error
    if dtype.startswith(("float", "bfloat")):
        return Stored(dtype, shape, _drawn(dtype, shape, data, code))
    packed = base64.b85encode(zlib.compress(data, 9)).decode("ascii")
    if len(packed) > _MOST_EMBEDDED:
        raise CannotImport(_too_large(path, key, len(packed)))
    return Stored(dtype, shape, f"_stored({shape!r}, torch.{dtype}, {packed!r})")


def _too_large(path: Path, key: str, size: int) -> str:
    return (
        f"{path.name}: {key} takes {size} bytes, too many to write into a problem file. Choose smaller workloads "
        "(--workloads), or write a recipe for it by hand"
    )


def _drawn(dtype: str, shape: tuple[int, ...], data: bytes, code: str) -> str:
    width = {"bfloat16": 2}.get(dtype, struct.calcsize(code) if code else 1)
    numbers = _floats(data[: _SAMPLED * width], dtype, code)
    finite = [one for one in numbers if math.isfinite(one)] or [0.0]
    mean = sum(finite) / len(finite)
    spread = math.sqrt(sum((one - mean) ** 2 for one in finite) / len(finite))
    return f"_draw({shape!r}, torch.{dtype}, {mean:.6g}, {spread:.6g})"


def _floats(data: bytes, dtype: str, code: str) -> list[float]:
    if code:
        count = len(data) // struct.calcsize(code)
        return list(struct.unpack(f"<{count}{code}", data[: count * struct.calcsize(code)]))
    if dtype == "bfloat16":
        halves = struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    return [0.0, 1.0, -1.0]  # eight bits: the draws are moderate numbers


HELPERS = """
def _draw(shape, dtype, mean=0.0, spread=1.0):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, dtype=dtype)
    if not dtype.is_floating_point:
        most = min(1024, torch.iinfo(dtype).max + 1)
        return torch.randint(-most, most, shape, dtype=dtype)
    drawn = torch.randn(shape) * spread + mean
    return (drawn.clamp(-2, 2) if dtype.itemsize == 1 else drawn).to(dtype)
"""
STORED = """
def _stored(shape, dtype, text):
    data = bytearray(zlib.decompress(base64.b85decode(text)))
    return torch.frombuffer(data, dtype=dtype).clone().reshape(shape)
"""
