"""List the ways to build a cage on this machine, the strongest first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from evaluator.cage.policy import StartMode
from evaluator.child import landlock
from evaluator.types import DeviceKind

_BASE = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try")
_NOBODY = 65534
# A range that no account uses (systemd's DynamicUser); each child of a root judge gets a user of its own.
_FIRST_UID, _UIDS = 61184, 4000
_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SYS_PTRACE, _CAP_SYS_ADMIN = 5, 6, 7, 19, 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One way to build a cage. `isolation` lists what it leaves out."""

    name: str
    mode: StartMode
    namespaces: tuple[str, ...]
    capabilities: tuple[str, ...]
    own_users: bool
    isolation: tuple[str, ...] = ()

    @property
    def caged(self) -> bool:
        """Return true if bubblewrap holds the children. Without it there are no namespaces."""
        return self.name != "bare"

    @property
    def nested(self) -> bool:
        """Return true if children are forked into namespaces of their own, below the fork server's."""
        return self.caged and self.mode is StartMode.FORK

    @property
    def supervisor_uid(self) -> int | None:
        return _NOBODY if self.own_users else None

    def job_uid(self, ordinal: int) -> int | None:
        """Return the user that a child becomes, or None if it keeps its own."""
        return _FIRST_UID + ordinal % _UIDS if self.own_users else None


def levels(mode: StartMode, kind: DeviceKind) -> list[Level]:
    """Return the levels to try for a start mode; forking falls back to spawning."""
    found = []
    root = _is_able_root()
    as_root = ("running as root without its usual rights: children run as this user, inside a user namespace",)
    in_user_namespace = as_root if os.geteuid() == 0 else ()
    user = ("--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY))
    drop = ("CAP_SETPCAP",)
    become = ("CAP_SETUID", "CAP_SETGID", *drop)
    if mode is StartMode.FORK:
        if root:
            found.append(_level("nested", mode, _BASE, ("CAP_SYS_ADMIN", *become), True))
        found.append(_level("nested-user", mode, (*user, *_BASE), ("CAP_SYS_ADMIN", *drop), False, in_user_namespace))
    if root:
        found.append(_level("single", StartMode.SPAWN, _BASE, become, True))
    found.append(_level("single-user", StartMode.SPAWN, (*user, *_BASE), drop, False, in_user_namespace))
    found.append(_level("bare", StartMode.FORK, (), (), root, _left_open(kind, own_users=root)))
    return found


def _left_open(kind: DeviceKind, *, own_users: bool) -> tuple[str, ...]:
    """Return the protections that are missing without bubblewrap."""
    version = landlock.abi()
    out = ["namespaces: bubblewrap cannot run here; a child sees the machine's processes, host name and network names"]
    if version == 0:
        out.append("files: a child can read all files that its user can read, and write into shared temporary folders")
    if version < 6 and not own_users:
        out.append("signals: a child can end other processes of this user")
    if kind is DeviceKind.CUDA:
        out.append("sockets: CUDA needs UNIX sockets, so a child can reach local services that its user may reach")
    out.append("disk: only the size of each file is limited, not their number")
    return tuple(out)


def _level(
    name: str,
    mode: StartMode,
    namespaces: tuple[str, ...],
    capabilities: tuple[str, ...],
    own_users: bool,
    isolation: tuple[str, ...] = (),
) -> Level:
    return Level(
        name=name,
        mode=mode,
        namespaces=namespaces,
        capabilities=capabilities,
        own_users=own_users,
        isolation=isolation,
    )


def _is_able_root() -> bool:
    """Return true for root with the rights to make namespaces, and to signal, read and become other users."""
    if os.geteuid() != 0:
        return False
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            needed = (_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SYS_PTRACE, _CAP_SYS_ADMIN)
            return all(effective >> number & 1 for number in needed)
    return False
