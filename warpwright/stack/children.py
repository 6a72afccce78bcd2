"""Child processes that die with their parent: an own process group, a log file, a bounded stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
TAIL_BYTES = 3000


@dataclass(frozen=True, slots=True)
class Child:
    """A process that we started, the leader of its own process group."""

    name: str
    process: subprocess.Popen[bytes]
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
    options = [str(os.getpid()), str(int(signal.SIGKILL)), ",".join(map(str, sorted(cpus)))]
    tied = [sys.executable, "-S", "-E", str(DIE_WITH_PARENT), *options, *command]
    with log.open("ab") as file:
        begins = file.tell()
        process = subprocess.Popen(
            tied,
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
