"""A judge in a process of its own, asked over its pipe and replaced after a fault."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

_MAX_BYTES = 64 * 2**20
_STOP_S = 5.0


class JudgeFault(Exception):
    """The judge gave no answer: it failed, ended or took too long. Never the Candidate's fault."""


class ServedJudge:
    """`python -m evaluator serve`, started by the first request. Close it at the end."""

    def __init__(self, device: str, command: Sequence[str] = ()) -> None:
        self._command = [*(command or (sys.executable, "-m", "evaluator", "serve")), "--device", device]
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._lock, self._ended = threading.Lock(), False

    def request(self, op: str, *, deadline_s: float, **payload: Any) -> Any:
        """Return the result of a request. Raises JudgeFault; after a lost answer the next request starts anew."""
        deadline = time.monotonic() + deadline_s
        try:
            process = self._running()
            assert process.stdin is not None
            process.stdin.write(json.dumps({"id": op, "op": op, **payload}).encode() + b"\n")
            process.stdin.flush()
            reply = json.loads(self._line(process, deadline))
        except (OSError, ValueError) as error:
            self.close()
            raise JudgeFault(f"{op}: {error}") from error
        except JudgeFault as fault:
            self.close()
            raise JudgeFault(f"{op}: {fault}") from fault
        if not isinstance(reply, dict) or reply.get("ok") is not True:
            raise JudgeFault(f"{op}: {str(reply.get('error') if isinstance(reply, dict) else reply)[:2000]}")
        return reply.get("result")

    def end(self) -> None:
        """Close it for good, from another thread than the one that waits for an answer: that one gets JudgeFault."""
        with self._lock:
            self._ended = True
        self.close()

    def close(self) -> None:
        """End the judge and all that it started."""
        with self._lock:
            process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_STOP_S)
        process.stdout.close()  # type: ignore[union-attr]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        with self._lock:
            if self._ended:
                raise JudgeFault("it was ended")
            if self._process is None:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
                )
            return self._process

    def _line(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        while (end := self._buffer.find(b"\n")) < 0:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise JudgeFault("the judge did not answer in time")
            chunk = os.read(descriptor, 2**20)
            if not chunk or len(self._buffer) > _MAX_BYTES:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_S)
                raise JudgeFault(f"the judge ended without an answer (status {process.returncode}); it says why above")
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line
