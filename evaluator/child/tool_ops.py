"""Run one of NVIDIA's tools in a caged child, around `tool_target` or `probe`.

This child itself runs none of a Candidate's code. Tool and target are processes below it and end with it. A Candidate
could reach the files that they leave behind, so these are claims, of limited size.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.progress import PROGRESS_VARIABLE

_HEAD_BYTES, _TAIL_BYTES = 192 << 10, 32 << 10
_TARGET = "import sys; sys.path[:] = {path!r}; from evaluator.child.{target} import main; main()"


def run(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Run "tool" (program and options; we choose its log file) around "target", for at most "limit_s" seconds.

    "environment" is added to the target's. Return {"exit": status, negative for a signal, None when it ran out of time;
    "log": the tool's; "words": the target's progress; "output": what both printed}.
    """
    del fds
    folder = Path(os.environ.get("TMPDIR", "/tmp"), "tool")
    folder.mkdir()
    log, words, output = folder / "log", folder / "words", folder / "output"
    target = [sys.executable, "-I", "-S", "-B", "-u", "-c", _TARGET.format(path=sys.path, target=request["target"])]
    environment = {**os.environ, **request["environment"], PROGRESS_VARIABLE: str(words)}
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*request["tool"], "--log-file", str(log), *target],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(request["limit_s"])
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):  # a process that left the group ends with the cage
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return {"exit": code, "log": _text(log), "words": _text(words), "output": _text(output)}


def _text(path: Path) -> str:
    """Return head and tail of a file that a hostile process may have made: follow no link, wait for no pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ""
        data = os.pread(fd, _HEAD_BYTES, 0)
        if found.st_size > _HEAD_BYTES:
            start = max(_HEAD_BYTES, found.st_size - _TAIL_BYTES)
            data += b"\n" + os.pread(fd, _TAIL_BYTES, start)
    finally:
        os.close(fd)
    return data.decode("utf-8", "replace")


OPS: dict[str, Operation] = {"tool": run}
