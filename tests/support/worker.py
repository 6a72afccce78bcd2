"""A real worker process, as production starts it, for tests that kill it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class WorkerProcess:
    """`python -m workers KIND`, its own process group; its output goes to a file."""

    def __init__(self, kind: str, environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workers", kind],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9 of the worker itself, as the kernel's memory killer does it: nothing else is told."""
        self.process.kill()
        self.process.wait(60)

    def stop(self, timeout_s: float = 60.0) -> int:
        """Ask it to end, wait, then kill what is left of its group; returns its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
