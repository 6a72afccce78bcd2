"""Memory files become read-only: they are sealed once no process holds their pages."""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

import pytest
import torch

from evaluator.devices import cpu_memory
from evaluator.devices.cpu_memory import CpuGrant, memory_file
from evaluator.errors import CageError


def test_a_file_with_held_pages_is_sealed_once_they_are_released(monkeypatch):
    fd = memory_file("held", 4096)
    held = mmap.mmap(fd, 4096)  # which the kernel answers as it does while it moves a page itself
    seal, asked = fcntl.fcntl, []

    def refused_twice(which: int, command: int, argument: int) -> int:
        asked.append(argument)
        if len(asked) == 3:
            held.close()
        return seal(which, command, argument)

    monkeypatch.setattr(cpu_memory.fcntl, "fcntl", refused_twice)
    cpu_memory._seal(fd)
    monkeypatch.undo()
    assert len(asked) == 3
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 0)
    os.close(fd)


def test_pages_that_stay_held_are_a_machine_error_and_leave_no_file(monkeypatch):
    made: list[mmap.mmap] = []

    def held(name: str, size: int) -> int:
        fd = memory_file(name, size)
        made.append(mmap.mmap(fd, size))
        return fd

    monkeypatch.setattr(cpu_memory, "memory_file", held)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(CageError, match="does not seal a memory file"):
        CpuGrant([(torch.ones(8),)])
    made.pop().close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
