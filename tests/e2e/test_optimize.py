"""The main job on a stack of its own: `warpwright optimize` starts it, searches, and leaves a file and no process."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.commands import (
    PROBLEM,
    START_S,
    STOP_S,
    check,
    command,
    optimize,
    processes_of,
    running_url,
    shorter,
    wait_until,
)
from tests.support import fake_judge
from warpwright.api import Client
from warpwright.errors import ExitCode

pytestmark = [pytest.mark.timeout(700), pytest.mark.stack]


@pytest.mark.clock
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


@pytest.mark.parametrize(
    "its_judge",
    [
        {"WARPWRIGHT_JUDGE_COMMAND": fake_judge.COMMAND, "WARPWRIGHT_TRACE_AHEAD": "false"},
        pytest.param({}, marks=pytest.mark.soak),
    ],
    ids=["scripted", "real"],
)  # fmt: skip
def test_an_interrupt_cancels_the_run_and_leaves_no_process(its_judge: dict[str, str], tmp_path: Path) -> None:
    """A real judge starts caged children, too: test_serve.py kills a service that has some."""
    arguments = ("--device", "cpu", "--seconds", "100")
    with command(tmp_path, "optimize", str(PROBLEM), *arguments, **its_judge) as process:
        assert wait_until(lambda: running_url(tmp_path), START_S)
        with Client(str(running_url(tmp_path))) as client:
            assert wait_until(lambda: client.list_runs().items, START_S)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=STOP_S)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert wait_until(lambda: not processes_of(tmp_path), STOP_S), processes_of(tmp_path)
    with closing(sqlite3.connect(tmp_path / "warpwright.db")) as kept:
        assert kept.execute("SELECT status FROM runs").fetchall() == [("cancelled",)], said
