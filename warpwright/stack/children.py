"""Child processes with an end: own process group, death with the parent, a log file, a bounded stop."""

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
    """One process that we started, the leader of its own process group."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    log_begins: int = 0

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_tail(self) -> str:
        """The end of what this process wrote, for a message to a person."""
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
    """Start `command`, bound to this process (call it from the main thread: the bond is to the thread).

    Output is appended to `log`; `stdin` (a configuration that must not show in the process list) is fed and closed.
    `cpus` are the processors that it may use; empty means those of this process.
    """
    bond = [str(os.getpid()), str(int(signal.SIGKILL)), ",".join(map(str, sorted(cpus)))]
    bound = [sys.executable, "-S", "-E", str(DIE_WITH_PARENT), *bond, *command]
    with log.open("ab") as file:
        begins = file.tell()
        process = subprocess.Popen(
            bound,
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
    """End children in the order given: asked first, all together, then killed with their whole group."""
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
        child.signal_group(signal.SIGKILL)  # also what a leader left behind in its group
        child.process.wait()
