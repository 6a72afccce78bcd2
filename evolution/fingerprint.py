"""A coarse fingerprint of a reference: the operations that it names. Similar Problems share most of them."""

from __future__ import annotations

import re

_CALL = re.compile(r"(?:torch|F|nn|functional)\.(\w+)\s*\(|\.(\w+)\(|\s(@)\s")
_CLASS = re.compile(r"^class \w+.*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN = frozenset(
    (
        *("randn", "rand", "zeros", "ones", "empty", "arange", "tensor", "randint", "view", "reshape", "to", "float"),
        *("contiguous", "size", "shape", "__init__", "super", "module", "parameter", "items", "append", "get"),
    )
)


def fingerprint(source: str) -> frozenset[str]:
    """Return the names of the operations in a reference's classes, without inputs and tensor plumbing."""
    text = "".join(_CLASS.findall(source)) or source
    names = {next(name for name in found if name) for found in _CALL.findall(text)}
    return frozenset(name.lower() for name in names) - _PLAIN


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard similarity of two fingerprints: 1.0 if equal, 0.0 with no common operation."""
    return len(one & other) / len(one | other) if one | other else 0.0
