"""Outputs that share memory with the inputs of a call are recognised by the child's mappings."""

from __future__ import annotations

import ctypes
import mmap
import os
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.cage import mappings
from evaluator.child.protocol.layout import LayoutError
from evaluator.devices.cpu_memory import mark_aliases, memory_file

LIBC = ctypes.CDLL(None, use_errno=True)
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


def test_a_kernel_that_answers_no_queries_tells_the_same_as_text() -> None:
    """Also of a span with more mappings than are asked for singly, and of files beside the inputs."""
    fd, other = memory_file("inputs", 8192), memory_file("inputs", 4096 * 200)
    try:
        blocks = [
            mmap.mmap(fd, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_PRIVATE),
            mmap.mmap(fd, 4096),
        ]
        starts = [ctypes.addressof(ctypes.c_char.from_buffer(block)) for block in blocks]
        many = mmap.mmap(other, 4096 * 200)
        first = ctypes.addressof(ctypes.c_char.from_buffer(many))
        for page in range(0, 200, 2):  # a mapping for each page
            LIBC.mprotect(ctypes.c_void_p(first + 4096 * page), 4096, mmap.PROT_READ)
        spans = [(s + shift, size) for s in [*starts, first] for shift in (-4096, -1, 0, 5000) for size in (0, 1, 9000)]
        spans += [(0, 1 << 62), (-1, 1), (first, 4096 * 200), (1 << 70, 1 << 70), (0, 0)]
        found = mappings.meet_file(os.getpid(), fd, spans)
        assert found == mappings.in_text(os.getpid(), fd, spans)
        assert (found[7], found[-5:]) == (True, [True, False, False, False, False])
    finally:
        os.close(fd)
        os.close(other)


def test_mappings_that_cannot_be_read_are_a_fault() -> None:
    gone: Any = SimpleNamespace(pid=2**22 + 1)
    fd = memory_file("inputs", 4096)
    try:
        with pytest.raises(LayoutError, match="mappings cannot be read"):
            mark_aliases(gone, fd, [claim(4096, 1)])
    finally:
        os.close(fd)
