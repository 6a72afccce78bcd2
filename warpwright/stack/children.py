"""Child processes that die with their parent: an own process group, a log file, a bounded stop.

A child is a command, or a program that a `Nursery` forks (`python -m runtime.nursery`), which has imported it before.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from warpwright.errors import StackFailed

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
TAIL_BYTES = 3000
IMPORTED_S = 60.0


class Process(Protocol):
    """Declare the parts of `subprocess.Popen` that a child needs."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


@dataclass(frozen=True, slots=True)
class Child:
    """A process that we started, the leader of its own process group."""

    name: str
    process: Process
    log: Path
    log_begins: int = 0

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_tail(self) -> str:
        """Return the end of this process's output, for a message to a person."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(self.log_begins, self.log.stat().st_size - TAIL_BYTES))
                return file.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def last_words(self) -> str:
        """Return what this process said of its own end (`warpwright: ...`), else the end of its output."""
        tail = self.log_tail()
        said = tail.rfind("\nwarpwright: ")
        return tail[said + 1 :] if said >= 0 else tail

    def signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def start(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | None = None,
    cpus: Collection[int] = (),
) -> Child:
    """Start a command that dies with this process. Call it from a thread that lives on: the kernel ties it to that.

    Output is appended to `log`. `stdin` is written and closed; it can hold what must not show in the process list.
    `cpus` are the processors that it may use; empty means those of this process.
    """
    with log.open("ab") as file:
        begins = file.tell()
        process = subprocess.Popen(
            _tied(command, cpus),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    if stdin is not None and process.stdin is not None:
        with process.stdin as pipe:
            pipe.write(stdin)
    return Child(name=name, process=process, log=log, log_begins=begins)


def _tied(command: Sequence[str], cpus: Collection[int] = ()) -> list[str]:
    """Return a command that starts this one on those processors, and has the kernel kill it with this process."""
    options = [str(os.getpid()), str(int(signal.SIGKILL)), ",".join(map(str, sorted(cpus)))]
    return [sys.executable, "-S", "-E", str(DIE_WITH_PARENT), *options, *command]


class Nursery:
    """A process that has imported `modules` and forks programs. They die with it, and it with this process.

    Its methods are for one thread, the one that made it.
    """

    def __init__(self, modules: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path) -> None:
        command = [sys.executable, "-m", "runtime.nursery", *modules]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                _tied(command),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
                env=dict(env), cwd=cwd, start_new_session=True,
            )  # fmt: skip
        self._log, self._rest = log, b""
        self._started: list[int] = []
        self._ended: dict[int, int] = {}

    def alive(self) -> bool:
        return self._process.poll() is None

    def start(
        self, name: str, module: str, arguments: Sequence[str], *, log: Path, env: Mapping[str, str],
        cpus: Collection[int] = (),
    ) -> Child:  # fmt: skip
        """Start `python -m module arguments...`. Raise StackFailed if the nursery is dead, or its imports hang."""
        log.touch()
        begins = log.stat().st_size
        request = {
            "name": name,
            "module": module,
            "arguments": list(arguments),
            "environment": dict(env),
            "log": str(log),
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({**request, "cpus": sorted(cpus)}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise StackFailed(f"{name} could not be started, see {self._log}: {error}") from error
        deadline = time.monotonic() + IMPORTED_S
        while not self._started:
            if not self._read(deadline - time.monotonic()):
                raise StackFailed(f"{name} could not be started, see {self._log}")
        return Child(name=name, process=Forked(self._started.pop(), self), log=log, log_begins=begins)

    def exit_status(self, pid: int, timeout_s: float = 0.0) -> int | None:
        """Return a program's exit status, or None if it has not ended within `timeout_s`. All end with the nursery."""
        deadline = time.monotonic() + timeout_s
        while pid not in self._ended:
            if not self._read(max(0.0, deadline - time.monotonic())):
                return None if self.alive() else -signal.SIGKILL
        return self._ended[pid]

    def _read(self, timeout_s: float) -> bool:
        """Read answers; return False if none came in time, or will ever come."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        if not select.select([fd], [], [], max(0.0, timeout_s))[0]:
            return False
        data = os.read(fd, 1 << 16)
        if not data:
            self._process.wait()  # its answers end with it
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for told in map(json.loads, lines):
            if "pid" in told:
                self._started.append(told["pid"])
            else:
                self._ended[told["ended"]] = told["status"]
        return True

    def close(self, *, grace_s: float) -> None:
        """End it, and every program that is left."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what a dead one did not read
                    pipe.close()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(slots=True)
class Forked:
    """A program of a nursery, with the methods of `subprocess.Popen` that are needed."""

    pid: int
    nursery: Nursery
    returncode: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.nursery.exit_status(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self.poll() is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a program of the nursery", timeout or 0.0)
            self.returncode = self.nursery.exit_status(self.pid, min(left_s, 1.0))
        assert self.returncode is not None
        return self.returncode


def stop(children: Sequence[Child], *, grace_s: float) -> None:
    """Stop children: terminate all of them, wait up to `grace_s`, then kill each one's process group."""
    for child in children:
        if child.alive():
            child.signal_group(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for child in children:
        try:
            child.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            continue
    for child in children:
        child.signal_group(signal.SIGKILL)  # processes may outlive their group's leader
        child.process.wait()
