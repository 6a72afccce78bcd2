"""The judge as a long-lived child: JSON lines over a pipe, started on demand, killed with its group on a fault."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from runtime.logs import get_logger
from workers.errors import JudgeFault

ROOT = Path(__file__).resolve().parents[1]
DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
MAX_LINE_BYTES = 64 * 2**20
STOP_S = 5.0
LAST_WORDS_BYTES = 1000
SECRETS = frozenset({"WARPWRIGHT_API_KEY", "WARPWRIGHT_DATABASE_URL", "WARPWRIGHT_REDIS_URL", "WARPWRIGHT_MODELS"})

log = get_logger(__name__)

OnNote = Callable[[Mapping[str, Any]], None]


class JudgeProcess:
    """A `python -m evaluator serve` child. It takes one request at a time, from the thread that owns it.

    `start` or the first request starts the child, which dies with that thread. `interrupt` may be called from any
    thread or from a signal handler: the request in progress then raises JudgeFault.
    """

    def __init__(
        self,
        device: str,
        *,
        command: Sequence[str] = (),
        builds: bool = False,
        hidden: Collection[str] = (),
        stopping: threading.Event | None = None,
    ) -> None:
        """Run `command` (by default this Python's evaluator room) with `--device D`, and `--builds` if it only builds.

        `hidden` names environment variables that the judge does not get, in addition to our own secrets. No child
        starts once `stopping` is set.
        """
        self._device = device
        program = command or (sys.executable, "-m", "evaluator", "serve")
        self._command = (*program, "--device", device, *(("--builds",) if builds else ()))
        self._hidden = SECRETS | set(hidden)
        self._stopping = stopping or threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._errors: IO[bytes] | None = None  # what the child prints to standard error
        self._ids = itertools.count(1)

    @property
    def pid(self) -> int | None:
        """The child's process id, or None if none runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the child without waiting for it. Raises JudgeFault."""
        self._running()

    def request(self, op: str, *, deadline_s: float, on_note: OnNote | None = None, **payload: Any) -> Any:
        """Send a request and return its result, within `deadline_s` in total. Raises JudgeFault.

        `on_note` gets each note that the judge sends meanwhile about what it is doing. A timeout, a broken pipe or an
        unreadable answer kills the child; the next request starts another.
        """
        process = self._running()
        request_id = str(next(self._ids))
        if on_note is not None:
            payload["notes"] = True
        deadline = time.monotonic() + deadline_s
        try:
            self._send(process, {"id": request_id, "op": op, **payload}, deadline)
            reply = self._receive(process, request_id, deadline, on_note)
        except (OSError, ValueError) as error:
            self.kill()
            raise JudgeFault(f"the judge failed during {op}: {error}") from error
        except JudgeFault as fault:
            self.kill()
            raise JudgeFault(f"{op}: {fault}") from fault
        if reply.get("ok") is not True:
            raise JudgeFault(f"{op}: {str(reply.get('error') or 'the judge gave no reason')[:2000]}")
        return reply.get("result")

    def interrupt(self) -> None:
        """Kill the child's process group without waiting."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the child's process group and wait for it."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)
        for pipe in (process.stdin, process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def close(self) -> None:
        """Close the child's input so that it ends by itself, then kill its process group."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
        self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            log.warning("judge.died", device=self._device, exit=self._process.returncode)
            self.kill()
        if self._process is None:
            if self._stopping.is_set():
                raise JudgeFault("a stopping worker starts no judge")
            try:
                self._process = self._started()
            except OSError as error:
                if self._errors is not None:
                    self._errors.close()
                raise JudgeFault(f"the judge does not start: {error}") from error
            log.info("judge.started", device=self._device, pid=self._process.pid)
        return self._process

    def _started(self) -> subprocess.Popen[bytes]:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  it is closed with the child
        environment = {key: value for key, value in os.environ.items() if key not in self._hidden}
        process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(DIE_WITH_PARENT), str(os.getpid()), *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )
        os.set_blocking(process.stdin.fileno(), False)  # type: ignore[union-attr]
        return process

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        """Return how an ending child ended and what it printed last, and log that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        assert self._errors is not None
        descriptor = self._errors.fileno()
        said = os.pread(descriptor, LAST_WORDS_BYTES, max(0, os.fstat(descriptor).st_size - LAST_WORDS_BYTES))
        words = said.decode("utf-8", "replace").replace("\0", "").strip()
        log.warning("judge.ended", device=self._device, exit=process.returncode, said=words)
        return f" (status {process.returncode}){f': {words}' if words else ''}"

    def _send(self, process: subprocess.Popen[bytes], message: dict[str, Any], deadline: float) -> None:
        assert process.stdin is not None
        descriptor = process.stdin.fileno()
        data = memoryview(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        while data:
            _, ready, _ = select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise JudgeFault("the judge did not read its request in time")
            data = data[os.write(descriptor, data[:65536]) :]

    def _receive(
        self, process: subprocess.Popen[bytes], request_id: str, deadline: float, on_note: OnNote | None
    ) -> dict[str, Any]:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        while True:
            while (end := self._buffer.find(b"\n")) < 0:
                if len(self._buffer) > MAX_LINE_BYTES:
                    raise JudgeFault("the judge's answer is too long")
                ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise JudgeFault("the judge did not answer in time")
                chunk = os.read(descriptor, 2**20)
                if not chunk:
                    raise JudgeFault(f"the judge ended without an answer{self._last_words(process)}")
                self._buffer += chunk
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            reply = json.loads(line)
            if isinstance(reply, dict) and reply.get("id") == request_id:
                note = reply.get("note")
                if note is None:
                    return reply
                if on_note is not None and isinstance(note, dict):
                    on_note(note)
                continue
            raise JudgeFault("the judge answered another request")
