"""The command line and the server: exit statuses, JSON alone on standard output, one reply per line."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator import judging
from evaluator.cli import main
from evaluator.problem import read_problem
from evaluator.schema import from_json, to_json
from evaluator.types import (
    Admission,
    BaselineReport,
    BuildReport,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Verdict,
)
from tests.evaluator.rooms import CPP, PROBLEM, candidate, eager_report, forward, problem

ROOT = Path(__file__).parents[2]


# As `python -m evaluator serve`, but for torch.compile, which serves no request here and takes most of the time; the
# last line of the errors names the modules that were loaded.
SERVES = """
import atexit, json, runpy, sys
from evaluator.device_session.comparators import ComparatorCache
ComparatorCache.modes = lambda self: ("eager",)
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
runpy.run_module("evaluator", run_name="__main__")
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "p.py").write_text(PROBLEM)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "wrong.py").write_text(
        candidate("").source + "class ModelNew(Base):\n    def forward(self, x):\n        return x\n"
    )
    return tmp_path


@pytest.mark.judge
def test_a_wrong_candidate_exits_with_1_and_json_stands_alone(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    eager = eager_report(read_problem(PROBLEM, "p"), Device(kind=DeviceKind.CPU, name="x", uuid="y"))
    (files / "b.json").write_text(json.dumps(to_json(eager)))  # without it every Baseline would be compiled
    asked = ["judge", "--problem", str(files / "p.py"), "--candidate", str(files / "wrong.py"), "--json", "-"]
    assert main([*asked, "--baseline", str(files / "b.json")]) == 1
    found = from_json(Evaluation, json.loads(capfd.readouterr().out))
    assert found.verdict is Verdict.INCORRECT_VALUES


def test_bad_usage_exits_with_2(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["judge", "--problem", str(files / "p.py")])
    assert refused.value.code == 2
    assert main(["judge", "--problem", str(files / "none.py"), "--candidate", str(files / "wrong.py")]) == 2
    assert "none.py" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["evaluator", "admit", "--problem", str(files / "broken.py")])
    with pytest.raises(SystemExit) as refused:
        runpy.run_module("evaluator", run_name="__main__")  # as `python -m evaluator` does
    assert refused.value.code == 2
    assert "line 1" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = files / "none"
    assert main(["judge", "--problem", str(missing), "--candidate", str(files / "wrong.py")]) == 2
    assert main(["work", str(missing), "--device", "cpu"]) == 2
    assert capsys.readouterr().err == f"error: {missing}: No such file or directory\n" * 2


def test_baselines_of_another_problem_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device, environment = Device(kind=DeviceKind.CPU, name="x", uuid="y"), Environment(python="3", torch="2")
    found = BaselineReport(problem_hash="0" * 64, device=device, environment=environment, times=())
    (files / "b.json").write_text(json.dumps(to_json(found)))
    asked = ["judge", "--problem", str(files / "p.py"), "--candidate", str(files / "wrong.py")]
    assert main([*asked, "--baseline", str(files / "b.json")]) == 2
    assert "another problem" in capsys.readouterr().err


def test_the_machine_is_examined_without_torch() -> None:
    """Each start of a stack waits for it."""
    command = [sys.executable, "-X", "importtime", "-m", "evaluator", "doctor", "--brief", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert json.loads(done.stdout)["can_judge_cpu"] is (done.returncode == 0)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "evaluator.cli" in loaded
    assert not loaded & {"torch", "evaluator.judging"}


@pytest.mark.judge
def test_the_server_answers_each_line_and_ends_with_its_input() -> None:
    """It avoids slow imports: torch loads sympy for rare functions, which takes a second or two."""
    task, good, wrong = (to_json(one) for one in (problem(), candidate(CPP, head=""), forward("return x")))
    eager = to_json(eager_report(problem(), Device(kind=DeviceKind.CPU, name="x", uuid="y")))
    requests = [
        {"id": "1", "op": "ping"},
        {"id": "2", "op": "describe"},
        {"id": "3", "op": "admit", "problem": task},
        {"id": "4", "op": "build", "problem": task, "candidate": good},
        {"id": "5", "op": "dance", "problem": task, "candidate": good},
        {"id": "6", "op": "judge", "problem": {"nonsense": 1}},
        {"id": "7", "op": "judge", "problem": task, "candidate": wrong, "baseline": eager},
    ]
    command = [sys.executable, "-c", SERVES, "serve", "--device", "cpu"]
    asked = "\n".join(json.dumps(r) for r in requests) + "\nnot json\n"
    done = subprocess.run(command, input=asked, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["id"] for r in replies] == ["1", "2", "3", "4", "5", "6", "7", None]
    assert [r["ok"] for r in replies] == [True, True, True, True, False, False, True, False]
    assert from_json(Admission, replies[2]["result"]).accepted
    assert from_json(BuildReport, replies[3]["result"]).evaluation is None
    assert from_json(Evaluation, replies[6]["result"]).verdict is Verdict.INCORRECT_VALUES
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded & {"torch", "sympy", "torch._dynamo", "torch._inductor"} == {"torch"}


def test_what_cannot_work_is_told_before_a_judge_starts(tmp_path, capsys):
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM)
    assert main(["admit", "--problem", str(path), "--device", "gpu"]) == 2
    assert "use cpu or cuda:N" in capsys.readouterr().err
    assert main(["admit", "--problem", str(path), "--json", str(tmp_path / "none" / "x.json")]) == 2
    assert "its folder does not exist" in capsys.readouterr().err


def test_a_result_that_cannot_be_written_is_printed(tmp_path, capsys):
    assert not judging._tell("{}", "right", str(tmp_path))
    captured = capsys.readouterr()
    assert captured.out == "right\n"
    assert "Is a directory" in captured.err


def test_an_interrupt_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "a.bundle"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluator", "work", str(pipe)], stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    with pipe.open("w"):  # opens once the command reads
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
