"""Processes of rows: several compile at once, one measures; none outlives its deadline."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from bench.anchors.rows import FIRST, Row

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05
LOG_TAIL = 700
RETRIES = 2  # without the plans that ended a row's process
ENVIRONMENT = {"OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1"}


@dataclass(slots=True)
class Limits:
    """Seconds that a row may take in all, and a turn alone on the device."""

    row_s: float = 260.0
    turn_s: float = 45.0


@dataclass
class Child:
    """The process of one row."""

    row: Row
    process: subprocess.Popen[str]
    log: TextIO
    began: float
    skip: tuple[str, ...] = ()
    turn_began: float | None = None
    plan: str = ""
    result: dict[str, Any] | None = None
    reason: str = ""
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        """Read what it says until it ends."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            try:
                said = json.loads(text)
            except ValueError:
                continue  # a library's own words
            if not isinstance(said, dict):
                continue
            if "result" in said:
                self.result = said["result"]
            elif said.get("state") == "alone":
                self.turn_began = time.monotonic()
            elif said.get("state") == "done":
                self.turn_began = None
            elif said.get("state") == "plan":
                self.plan = said["plan"]

    def late(self, limits: Limits, until: float) -> str:
        """Return why it has to end, or nothing."""
        now, turn = time.monotonic(), self.turn_began
        if turn is not None and now - turn > limits.turn_s:
            return f"held the device for more than {limits.turn_s:.0f} s"
        if now - self.began > limits.row_s:
            return f"not done in {limits.row_s:.0f} s"
        return "no time left in the budget" if now > until else ""

    def kill(self, reason: str) -> None:
        """End it with all that it started."""
        self.reason = reason
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def outcome(self) -> dict[str, Any]:
        """Return its result, or the row with the reason why there is none."""
        if self.result is not None:
            return self.result
        reason = self.reason or f"ended with {self.process.returncode}: {self._tail()}"
        return {"row": self.row.name, "of_table": self.row.of_table, "error_of_row": reason}

    def close(self) -> None:
        """Let its log and its pipe go."""
        self.thread.join(5)
        self.log.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _tail(self) -> str:
        self.log.flush()
        return " ".join(Path(self.log.name).read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:].split())


def start(row: Row, command: Sequence[str], logs: Path, skip: tuple[str, ...] = ()) -> Child:
    """Start a row's process in a group of its own."""
    log = (logs / f"{row.name.replace('/', '-')}.log").open("w+", encoding="utf-8")
    # Inductor's pools of compiling processes multiply with ours; only autotuned products have much to compile.
    threads = {"TORCHINDUCTOR_COMPILE_THREADS": "4" if row.name.startswith(FIRST) else "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **ENVIRONMENT, **threads}, stdout=subprocess.PIPE, stderr=log, text=True,
        start_new_session=True,
    )  # fmt: skip
    return Child(row, process, log, time.monotonic(), skip)


def row_command(row: Row, options: str, skip: Sequence[str]) -> list[str]:
    """Return the command for a row; `skip` names plans that are not to be tried."""
    own = "" if row.path.is_relative_to(Path(__file__).parent) else str(row.path)
    given = json.dumps({**json.loads(options), "skip": list(skip)})
    return [sys.executable, "-m", "bench.anchors.row", row.name, own, given]


@dataclass(frozen=True, slots=True)
class Pool:
    """Runs rows, some at once, until the budget ends."""

    command: Callable[[Row, Sequence[str]], Sequence[str]]
    logs: Path
    workers: int
    until: float
    limits: Limits

    def run(self, rows: Sequence[Row], tell: Callable[[dict[str, Any]], None]) -> None:
        """Tell each row's outcome as soon as it is there. Rows that are not started are not told."""
        waiting: list[tuple[Row, tuple[str, ...]]] = [(row, ()) for row in rows]
        running: list[Child] = []
        try:
            while waiting or running:
                while waiting and len(running) < self.workers and time.monotonic() < self.until:
                    row, skip = waiting.pop(0)
                    running.append(start(row, self.command(row, skip), self.logs, skip))
                if waiting and not running and time.monotonic() >= self.until:
                    return
                ended = [child for child in running if self._ended(child)]
                running = [child for child in running if child not in ended]
                for child in ended:
                    if child.result is None and child.plan and len(child.skip) < RETRIES:
                        waiting.insert(0, (child.row, (*child.skip, child.plan)))
                    else:
                        tell(child.outcome())
                    child.close()
                time.sleep(POLL_S)
        finally:
            for child in running:
                child.kill("interrupted")
                child.close()

    def _ended(self, child: Child) -> bool:
        """Return whether a child has ended, or was ended."""
        if child.process.poll() is None:
            reason = child.late(self.limits, self.until)
            if not reason:
                return False
            child.kill(reason)
        child.thread.join(5)
        return True
