"""Limits that the kernel keeps for all processes of a child together: control groups, where this user may make them.

Version 2 where the memory and pids controllers are delegated, version 1 where their folders can be written to. Without
either the watchdog and each process's own limits remain. A group is made per child and removed with it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_FILES = {  # what is written: memory limit, process limit
    2: {"memory": "memory.max", "pids": "pids.max"},
    1: {"memory": "memory.limit_in_bytes", "pids": "pids.max"},
}
_OOM = {2: "memory.events", 1: "memory.oom_control"}
_numbers = itertools.count()
_REMOVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups can be made: `folders` by controller (one folder for both in version 2)."""

    version: int
    folders: Mapping[str, Path]


class Group:
    """One child's group."""

    def __init__(self, hierarchy: Hierarchy, memory_bytes: int, processes: int) -> None:
        name = f"warpwright-{os.getpid()}-{next(_numbers)}"
        self._hierarchy = hierarchy
        self._folders = {controller: folder / name for controller, folder in hierarchy.folders.items()}
        try:
            for folder in set(self._folders.values()):
                folder.mkdir()
            for controller, limit in (("memory", memory_bytes), ("pids", processes)):
                (self._folders[controller] / _FILES[hierarchy.version][controller]).write_text(str(limit))
        except OSError:
            self.remove()
            raise

    def add(self, *pids: int) -> None:
        """Put processes in; what they start is in it, too. Raises OSError."""
        for folder in set(self._folders.values()):
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))

    def killed_for_memory(self) -> bool:
        """Whether the kernel ended a process of it for want of memory."""
        try:
            text = (self._folders["memory"] / _OOM[self._hierarchy.version]).read_text()
        except OSError:
            return False
        counts = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
        return int(counts.get("oom_kill", "0")) > 0

    def remove(self) -> None:
        """Once its processes are gone; the kernel may need a moment to see that."""
        end = time.monotonic() + _REMOVAL_S
        for folder in set(self._folders.values()):
            while folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > end:
                    break
                os.sched_yield()


def make_group(memory_bytes: int | None, processes: int) -> Group | None:
    """A new group with these limits, or None where none can be made."""
    found = find_hierarchy()
    if found is None or memory_bytes is None:
        return None
    try:
        return Group(found, memory_bytes, processes)
    except OSError:
        return None


@cache
def find_hierarchy() -> Hierarchy | None:
    """Where this process can make groups with limits; tried for real, once."""
    for candidate in _candidates():
        _sweep(candidate)
        try:
            Group(candidate, 1 << 30, 64).remove()
        except OSError:
            continue
        return candidate
    return None


def _sweep(found: Hierarchy) -> None:
    """Remove what judges left that were killed."""
    for folder in set(found.folders.values()):
        for group in folder.glob("warpwright-*-*"):
            pid = group.name.split("-")[1]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with contextlib.suppress(OSError):
                    group.rmdir()


def _candidates() -> Iterator[Hierarchy]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    if "" in paths and (_ROOT / "cgroup.controllers").exists():
        folder = _ROOT / paths[""].lstrip("/")
        yield Hierarchy(2, {"memory": folder, "pids": folder})
    if "memory" in paths and "pids" in paths:
        yield Hierarchy(1, {name: _ROOT / name / paths[name].lstrip("/") for name in ("memory", "pids")})
        yield Hierarchy(1, {name: _ROOT / name for name in ("memory", "pids")})
