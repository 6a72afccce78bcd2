"""Define cage policies: limits on memory, processes and files, and how children start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from evaluator.errors import CageError
from evaluator.types import DeviceKind

GIB = 1 << 30
MIB = 1 << 20


class StartMode(StrEnum):
    """The way to start a child.

    FORK: from a preloaded fork server, into nested namespaces (about 10 ms). It suits CUDA too, since the fork server
    never initialises CUDA.

    SPAWN: one cage per child (seconds, unless a standby cage is ready), for machines without nested namespaces.
    """

    FORK = "fork"
    SPAWN = "spawn"


class Minimum(StrEnum):
    """The least isolation that a judge may work at.

    ANY: the strongest that this machine offers; every result lists the missing protections.

    CAGED: bubblewrap's namespaces; without them nothing is judged.

    WHOLE: every protection.
    """

    ANY = "any"
    CAGED = "caged"
    WHOLE = "whole"


MINIMUM_VARIABLE = "WARPWRIGHT_MINIMUM_ISOLATION"


def minimum_asked_for() -> Minimum:
    """Return the minimum that the environment names. Raise CageError for an unknown word."""
    word = os.environ.get(MINIMUM_VARIABLE, Minimum.ANY)
    try:
        return Minimum(word)
    except ValueError:
        raise CageError(f"{MINIMUM_VARIABLE} is {', '.join(Minimum)}, not {word[:40]!r}") from None


@cache
def library_bytes() -> int:
    """Return the bytes of addresses that shared libraries take in this process: gigabytes where torch knows CUDA, which
    a child's allocations must not be charged for."""
    total = 0
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        addresses, *_, path = line.split(maxsplit=5)
        if ".so" in path:
            start, end = (int(word, 16) for word in addresses.split("-"))
            total += end - start
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one child. `None` means no such limit.

    `address_space_bytes` is RLIMIT_AS of each process (must be None with CUDA). `resident_bytes` bounds the sum over
    all processes of the child, checked ten times a second. `tmp_bytes` bounds /tmp and /dev/shm each.
    """

    address_space_bytes: int | None = 4 * GIB
    resident_bytes: int | None = 4 * GIB
    tmp_bytes: int = 1 * GIB
    file_bytes: int = 1 * GIB
    processes: int = 64
    descriptors: int = 2048  # more than the outputs that a Candidate has to keep at once

    @classmethod
    def for_device(cls, kind: DeviceKind) -> Limits:
        """Return the usual limits: CUDA maps terabytes of addresses and starts more threads. On the CPU addresses are
        counted beside those of libraries."""
        if kind is DeviceKind.CUDA:
            return cls(address_space_bytes=None, resident_bytes=32 * GIB, processes=256, descriptors=1024)
        return cls(address_space_bytes=4 * GIB + library_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class CagePolicy:
    """The way a pool builds its cages.

    `preload` names modules to import before a child gets its job. They are ours or libraries, never a Candidate's, and
    none may start a thread or touch CUDA. `environment` is added to the fixed list of variables. With SPAWN,
    `keep_standby` starts the next cage as soon as one is taken; on a CPU that would disturb timing. `output_bytes` of a
    child's output are kept: half from its head, half from its tail. Below `minimum` no pool is made. `readable` names
    further folders to show in a cage, never without bubblewrap. `loopback` allows internet sockets in cages that start
    one by one; their network is a loopback alone. Without bubblewrap it has no effect.
    """

    preload: tuple[str, ...] = ("torch", "evaluator.child.ops")
    environment: Mapping[str, str] = field(default_factory=dict)
    start: StartMode = StartMode.FORK
    keep_standby: bool = False
    output_bytes: int = 64 * 1024
    minimum: Minimum = field(default_factory=minimum_asked_for)
    start_timeout_s: float = 120.0
    readable: tuple[str, ...] = ()
    loopback: bool = False

    def __post_init__(self) -> None:
        if self.loopback and self.start is not StartMode.SPAWN:
            raise ValueError("loopback needs start=SPAWN: only cages that start one by one have a loopback")
