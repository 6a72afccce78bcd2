"""Start one child: its sockets, its first messages, its identity in the judge's pid namespace."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from pathlib import Path

from evaluator.cage import monitor
from evaluator.cage.host import CageHost
from evaluator.cage.level import Level
from evaluator.cage.policy import CagePolicy
from evaluator.errors import CageError
from evaluator.types import DeviceKind

_HELLO_TIMEOUT_S = 30.0
_CREDENTIALS = struct.Struct("3i")


def status_pair(kind: int = socket.SOCK_SEQPACKET) -> tuple[socket.socket, socket.socket]:
    """Return a connected pair. The first socket, the judge's, learns each sender's credentials (SCM_CREDENTIALS)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, theirs


class StandbyCage:
    """A cage for a single job that is importing, or waits for its job."""

    def __init__(
        self,
        kind: DeviceKind,
        level: Level,
        policy: CagePolicy,
        cpus: frozenset[int] | None,
        watch: monitor.Monitor,
        uid: int | None,
    ) -> None:
        self.status, inside = status_pair()
        try:
            with inside:
                self.host = CageHost(kind, level, policy, cpus=cpus, watch=watch, uid=uid, status=inside)
        except CageError:
            self.status.close()
            raise

    def close(self) -> None:
        self.status.close()
        self.host.close()


def await_child(channel: socket.socket, status: socket.socket, *, single: bool) -> tuple[int, int, int]:
    """Wait until supervisor and job report; return the job's pid, and the root's pid and pidfd.

    The root is the first process of the job's pid namespace: the supervisor itself, or bubblewrap's process that
    started it. Both report before any of a Candidate's code runs, and the kernel vouches for their identity.
    """
    deadline = time.monotonic() + _HELLO_TIMEOUT_S
    supervisor, said = _hear(status, deadline)
    if b"hello" not in said:
        raise CageError(f"the child could not be set up: {_reason(said)}")
    try:
        root = _parent(supervisor) if single else supervisor
        pidfd = os.pidfd_open(root)
    except (ProcessLookupError, FileNotFoundError) as gone:
        more = status.recv(65536) if status in _readable([status], 0) else b""
        raise CageError(f"the child ended while it was set up: {_reason(more)}") from gone
    try:
        if status in _readable([channel, status], deadline) and channel not in _readable([channel], 0):
            raise CageError(f"the child could not be set up: {_reason(status.recv(65536))}")
        pid, _ = _hear(channel, deadline)
    except BaseException:
        monitor.kill(pidfd)
        os.close(pidfd)
        raise
    return pid, root, pidfd


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_bytes()
    return int(stat[stat.rindex(b")") + 2 :].split()[1])


def _readable(sockets: list[socket.socket], deadline: float) -> list[socket.socket]:
    return select.select(sockets, [], [], max(0.0, deadline - time.monotonic()))[0]


def _hear(source: socket.socket, deadline: float) -> tuple[int, bytes]:
    """Return one message and its sender's pid as this process sees it."""
    if not _readable([source], deadline):
        raise CageError("the child did not come up in time")
    data, ancillary, _, _ = source.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and data:
            return _CREDENTIALS.unpack(payload)[0], data
    raise CageError("the child ended while it was set up")


def _reason(said: bytes) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(said)["failed"])
    return said.decode("utf-8", "backslashreplace") or "it said nothing"
