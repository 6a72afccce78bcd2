"""The main job over the real path: the embedded stack as child processes, HTTP, the judge in its cage, the file."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import fake_judge
from warpwright.api import Client
from warpwright.errors import ExitCode

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "examples" / "problems" / "rmsnorm_residual.py"
RUN_S = 600.0  # a 90 s search, then confirmations: minutes on a machine that is busy with other tests
START_S = 60.0
STOP_S = 30.0

pytestmark = [pytest.mark.timeout(700), pytest.mark.stack]


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
    """Every process that was started for this data folder and is still there."""
    marker = f"WARPWRIGHT_DATA_DIR={data}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
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
    assert wait_until(lambda: not processes_of(data), 5), processes_of(data)
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
        [sys.executable, "-I", str(best), "--check"], capture_output=True, text=True, timeout=120, cwd=best.parent,
        check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_kernel_file_from_a_problem_file(tmp_path: Path) -> None:
    """Times are scripted here, so that it always ends with a Champion; the file and its check are real."""
    best, problem = tmp_path / "best.py", tmp_path / "rmsnorm_residual.py"
    problem.write_text(shorter(PROBLEM, "cpu-300x1024", "few-rows"), encoding="utf-8")
    told = {"WARPWRIGHT_JUDGE_COMMAND": fake_judge.COMMAND, "FAKE_JUDGE_SPEED": "1.5"}
    result = optimize(tmp_path, problem, "--candidates", "3", "--seconds", "60", "-o", str(best), **told)
    assert result["improved"]
    assert result["candidates_by_verdict"]["PASSED"] >= 1
    check(best)


@pytest.mark.soak
def test_a_kernel_file_that_is_really_faster(tmp_path: Path) -> None:
    best, problem = tmp_path / "best.py", tmp_path / "rmsnorm_residual.py"
    problem.write_text(shorter(PROBLEM, "cpu-300x1024", "few-rows"), encoding="utf-8")
    result = optimize(tmp_path, problem, "--candidates", "8", "--seconds", "120", "-o", str(best))
    assert result["candidates_by_verdict"].get("PASSED", 0) >= 1, result["candidates_by_verdict"]
    if result["improved"]:
        headline = next(r for r in result["evaluation"]["speedups"] if r["against"] == "fastest" and not r["workload"])
        assert headline["interval"]["low"] > 1.0
    check(best)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("x = (1,\n", "line 1", marks=pytest.mark.soak),
        pytest.param("import torch\ndef get_inputs(): return [torch.randn(8)]\n", "Model", marks=pytest.mark.soak),
        pytest.param(
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\n",
            "get_inputs",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_reference_that_cannot_be_read_is_bad_usage(tmp_path: Path, source: str, words: str) -> None:
    problem = tmp_path / "problem.py"
    problem.write_text(source, encoding="utf-8")
    with command(tmp_path, "optimize", str(problem), "--device", "cpu", "--seconds", "5") as process:
        _, said = process.communicate(timeout=START_S)
    assert process.returncode == ExitCode.BAD_USAGE, said
    assert words in said
    assert "Traceback" not in said


def test_an_interrupt_cancels_the_run_and_leaves_no_process(tmp_path: Path) -> None:
    arguments = ("--device", "cpu", "--seconds", "100")
    with command(tmp_path, "optimize", str(PROBLEM), *arguments) as process:
        assert wait_until(lambda: running_url(tmp_path), START_S)
        with Client(str(running_url(tmp_path))) as client:
            assert wait_until(lambda: client.list_runs().items, START_S)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=STOP_S)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert wait_until(lambda: not processes_of(tmp_path), 5), processes_of(tmp_path)
    with closing(sqlite3.connect(tmp_path / "warpwright.db")) as kept:
        assert kept.execute("SELECT status FROM runs").fetchall() == [("cancelled",)], said


def ended(server: subprocess.Popen[str], data: Path, number: signal.Signals, status: int) -> None:
    """A stack that a signal ends leaves no process."""
    assert len(processes_of(data)) >= 5  # ours, Valkey, API, workers
    server.send_signal(number)
    server.communicate(timeout=STOP_S)
    assert server.returncode == status
    assert wait_until(lambda: not processes_of(data), 10), processes_of(data)


CRASHES = """import os, torch
class Model(torch.nn.Module):
    def forward(self, x): os.abort()
def get_inputs(): return [torch.randn(8)]
"""


def test_commands_find_the_service_that_runs_on_their_data_folder_and_nothing_is_left_when_it_is_killed(
    tmp_path: Path,
) -> None:
    problem = tmp_path / "problem.py"
    problem.write_text(CRASHES, encoding="utf-8")
    with command(tmp_path, "serve", "--port", "0", "--json") as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        before = processes_of(tmp_path)
        with command(tmp_path, "runs", "--json") as process:
            output, said = process.communicate(timeout=START_S)
        assert json.loads(output) == [], said
        assert set(processes_of(tmp_path)) <= set(before), "a second stack was started"
        with command(tmp_path, "serve", "--port", "0") as second:
            _, said = second.communicate(timeout=START_S)
        assert second.returncode == ExitCode.BAD_USAGE
        assert url in said
        with command(tmp_path, "optimize", str(problem), "--device", "cpu", "--seconds", "60") as process:
            _, said = process.communicate(timeout=120)  # the judge finds out, and says why
        assert process.returncode == ExitCode.BAD_USAGE, said
        assert "refused" in said
        ended(server, tmp_path, signal.SIGKILL, -signal.SIGKILL)
