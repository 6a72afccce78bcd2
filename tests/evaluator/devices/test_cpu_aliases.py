"""Outputs that share memory with the inputs of a call are recognised by the child's mappings."""

from __future__ import annotations

import ctypes
import mmap
import os
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.child.protocol.layout import LayoutError
from evaluator.devices.cpu_memory import mark_aliases, memory_file

CHILD: Any = SimpleNamespace(pid=os.getpid())


def claim(address: int, elements: int) -> dict[str, Any]:
    return {"address": address, "shape": [elements], "stride": [1], "dtype": "float32"}


def test_a_tensor_that_begins_before_the_inputs_and_ends_in_them_is_an_alias() -> None:
    """As where its first page is a copy, and the others are those of the input."""
    fd = memory_file("inputs", 8192)
    try:
        block = mmap.mmap(fd, 8192)
        start = ctypes.addressof(ctypes.c_char.from_buffer(block))
        inside, before, behind = claim(start + 64, 4), claim(start - 64, 16), claim(start + 8192, 16)
        across, within = claim(start - 64, 17), claim(start - 4096, 4096)
        odd: dict[str, Any] = {"type": "torch.Tensor", "device": "meta", "layout": "torch.strided", "shape": [4]}
        claims = [inside, before, behind, across, within, odd]
        mark_aliases(CHILD, fd, claims)
    finally:
        os.close(fd)
    assert [one["alias"] for one in claims] == [True, False, False, True, True, False]


def test_mappings_that_cannot_be_read_are_a_fault() -> None:
    gone: Any = SimpleNamespace(pid=2**22 + 1)
    fd = memory_file("inputs", 4096)
    try:
        with pytest.raises(LayoutError, match="mappings cannot be read"):
            mark_aliases(gone, fd, [claim(4096, 1)])
    finally:
        os.close(fd)
