"""What a cage allows: limits on memory, processes, files; how children are started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evaluator.errors import CageError
from evaluator.types import DeviceKind

GIB = 1 << 30
MIB = 1 << 20


class StartMode(StrEnum):
    """How a child comes into being.

    FORK: from a preloaded fork server, into nested namespaces of its own (about 10 ms). Good for CUDA as well, since
    the fork server never initialises it.
    SPAWN: one cage per child (seconds, unless a standby is kept ready); for machines without nested namespaces.
    """

    FORK = "fork"
    SPAWN = "spawn"


class Minimum(StrEnum):
    """The least isolation that a judge may work at.

    ANY: the strongest that this machine gives; what it lacks is said in every result.
    CAGED: bubblewrap's namespaces; without them nothing is judged.
    WHOLE: nothing may be left out.
    """

    ANY = "any"
    CAGED = "caged"
    WHOLE = "whole"


MINIMUM_VARIABLE = "WARPWRIGHT_MINIMUM_ISOLATION"


def minimum_asked_for() -> Minimum:
    """What the environment asks for. Raises CageError for anything but the three words."""
    word = os.environ.get(MINIMUM_VARIABLE, Minimum.ANY)
    try:
        return Minimum(word)
    except ValueError:
        raise CageError(f"{MINIMUM_VARIABLE} is {', '.join(Minimum)}, not {word[:40]!r}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one child. `None` means no such limit.

    `address_space_bytes` is RLIMIT_AS of each process (must be None with CUDA); `resident_bytes` bounds the sum over
    all processes of the child, watched ten times a second. `tmp_bytes` bounds /tmp and /dev/shm each.
    """

    address_space_bytes: int | None = 4 * GIB
    resident_bytes: int | None = 4 * GIB
    tmp_bytes: int = 1 * GIB
    file_bytes: int = 1 * GIB
    processes: int = 64
    descriptors: int = 2048  # more than the outputs that the judge has a Candidate keep at once

    @classmethod
    def for_device(cls, kind: DeviceKind) -> Limits:
        """The usual limits: CUDA maps terabytes of addresses and starts more threads."""
        if kind is DeviceKind.CUDA:
            return cls(address_space_bytes=None, resident_bytes=32 * GIB, processes=256, descriptors=1024)
        return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class CagePolicy:
    """How the pool builds its cages.

    `preload` names modules imported before a child gets its job; they are ours or libraries, never a Candidate's, and
    none may start a thread or touch CUDA. `environment` is added to the fixed list of variables. With SPAWN,
    `keep_standby` starts the next cage as soon as one is taken (on a CPU that would disturb what is being timed).
    `output_bytes` is how much of a child's output is kept (half its head, half its tail; the rest is dropped). Below
    `minimum` no pool is made. `readable` names further folders that a cage shows (never without bubblewrap). With
    `loopback` children may use internet sockets, too, in cages started one by one, whose network is a loopback alone;
    without bubblewrap they may not.
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
            raise ValueError("only cages that are started one by one have a loopback")
