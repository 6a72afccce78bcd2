"""Limit all processes of a child together with control groups, where this user may make them.

Version 2 is used if the memory and pids controllers are delegated, version 1 if their folders are writable. Otherwise
the watchdog and each process's own limits remain. Each child gets a group, which is removed with the child.
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
_FILES = {  # by version: the files of the memory limit and of the process limit
    2: {"memory": "memory.max", "pids": "pids.max"},
    1: {"memory": "memory.limit_in_bytes", "pids": "pids.max"},
}
_OOM = {2: "memory.events", 1: "memory.oom_control"}
_numbers = itertools.count()
_PAUSE_S = 0.001  # a yield would not give the core to what has yet to end (`freezer`)
_REMOVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A place to make groups: `folders` by controller (one folder for both in version 2)."""

    version: int
    folders: Mapping[str, Path]


class Group:
    """The group of one child."""

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
        """Move processes into the group, and with them all that they start later. Raise OSError."""
        for folder in set(self._folders.values()):
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))

    def killed_for_memory(self) -> bool:
        """Return true if the kernel killed a process of the group because memory ran out."""
        try:
            text = (self._folders["memory"] / _OOM[self._hierarchy.version]).read_text()
        except OSError:
            return False
        counts = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
        return int(counts.get("oom_kill", "0")) > 0

    def remove(self) -> None:
        """Remove the group after its processes ended. The kernel may need a moment to notice their end."""
        end = time.monotonic() + _REMOVAL_S
        for folder in set(self._folders.values()):
            while folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > end:
                    break
                time.sleep(_PAUSE_S)


def make_group(memory_bytes: int | None, processes: int) -> Group | None:
    """Return a new group with these limits, or None where none can be made."""
    found = find_hierarchy()
    if found is None or memory_bytes is None:
        return None
    try:
        return Group(found, memory_bytes, processes)
    except OSError:
        return None


@cache
def find_hierarchy() -> Hierarchy | None:
    """Return where this process can make groups with limits. The answer is found by trying, once."""
    for candidate in _candidates():
        _sweep(candidate)
        try:
            Group(candidate, 1 << 30, 64).remove()
        except OSError:
            continue
        return candidate
    return None


def _sweep(found: Hierarchy) -> None:
    """Remove the groups of judges that were killed."""
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
