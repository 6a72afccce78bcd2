"""Commands as a user runs them: processes of their own, and what is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpwright.errors import ExitCode

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "examples" / "problems" / "rmsnorm_residual.py"
RUN_S = 600.0  # a 90 s search, then confirmations: minutes on a machine that is busy with other tests
START_S = 180.0  # of a stack, on a machine that is busy with other tests
STOP_S = 60.0


def environment(data: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("WARPWRIGHT_")}
    return {**kept, "WARPWRIGHT_DATA_DIR": str(data), "PYTHONPATH": str(ROOT)}


@contextmanager
def command(data: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """`warpwright ...` as a process of its own with `more` in its environment, killed at the end if still there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "warpwright", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(data) | more, cwd=data,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=STOP_S)


def wait_until(condition: Callable[[], object], deadline_s: float) -> bool:
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def processes_of(data: Path) -> dict[int, str]:
    """Every process that was started for this data folder and is still there: its name and command line."""
    marker = f"WARPWRIGHT_DATA_DIR={data}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                words = [(entry / "comm").read_bytes().strip(), *(entry / "cmdline").read_bytes().split(b"\0")]
                found[int(entry.name)] = b" ".join(words).decode()
        except OSError:
            continue
    return found


def running_url(data: Path) -> str | None:
    try:
        return str(json.loads((data / "stack.json").read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError):
        return None


def shorter(problem: Path, *without: str) -> str:
    """Return the problem's source without some Workloads, since the confirmation of each takes time."""
    lines = problem.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not any(f'"name": "{name}"' in line for name in without)]
    assert len(kept) == len(lines) - len(without)
    return "".join(kept)


def optimize(data: Path, problem: Path, *budget: str, **more: str) -> dict[str, Any]:
    """Run `warpwright optimize --json`; check its exit, that no process is left, and that the leaderboard has it."""
    with command(data, "optimize", str(problem), "--device", "cpu", "--json", *budget, **more) as process:
        output, words = process.communicate(timeout=RUN_S)
    assert process.returncode in (ExitCode.OK, ExitCode.NO_IMPROVEMENT), words
    assert wait_until(lambda: not processes_of(data), STOP_S), processes_of(data)
    result: dict[str, Any] = json.loads(output)
    assert result["run"]["status"] == "finished"
    assert result["improved"] == (process.returncode == ExitCode.OK)
    with command(data, "leaderboard", "--json") as process:  # what was found stays, and can be asked for later
        output, words = process.communicate(timeout=START_S)
    assert process.returncode == ExitCode.OK, words
    assert len(json.loads(output)) == int(result["improved"])
    return result


def check(best: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-I", str(best), "--check", "--no-time"], capture_output=True, text=True, timeout=120,
        cwd=best.parent, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def ended(server: subprocess.Popen[str], data: Path, number: signal.Signals, status: int) -> None:
    """A stack that a signal ends leaves no process."""
    assert len(processes_of(data)) >= 5  # ours, Valkey, API, workers
    server.send_signal(number)
    server.communicate(timeout=STOP_S)
    assert server.returncode == status
    assert wait_until(lambda: not processes_of(data), STOP_S), processes_of(data)
