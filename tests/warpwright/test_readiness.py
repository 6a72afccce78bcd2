"""A machine's limits are told in doctor's words, before anything is asked of it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.warpwright.fake_api import FakeApi
from tests.warpwright.test_children import wait_until
from warpwright.api import Client
from warpwright.cli import agents, commands, doctor, evaluator_process, readiness, sessions
from warpwright.cli.problems import read_sizes
from warpwright.cli.sessions import Session
from warpwright.errors import BadUsage, ExitCode, Missing

CAGE = {"name": "cage", "need": "judging", "ok": False, "found": "no namespaces", "advice": "install bubblewrap"}
GPU = {
    "name": "gpu",
    "need": "cuda",
    "ok": False,
    "found": "torch is the CPU build",
    "advice": "install the CUDA build",
}


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the judge's examination an answer."""

    def answer(*findings: dict[str, Any], cpu: bool = True, cuda: bool = False, text: str | None = None) -> None:
        report = {"findings": findings, "can_judge_cpu": cpu, "can_judge_cuda": cuda, "isolation": []}
        said = json.dumps(report) if text is None else text
        monkeypatch.setattr(evaluator_process, "capture", lambda *_, **__: (0 if cpu or cuda else 1, said, ""))

    return answer


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(readiness, "gpus", list)
    with pytest.raises(Missing, match=r"cuda:0: there is no NVIDIA device\. Use --device cpu"):
        readiness.check_ready("cuda:0", tmp_path)
    monkeypatch.setattr(readiness, "gpus", lambda: ["nvidia0"])
    with pytest.raises(Missing, match=r"cuda:3: this machine has 1 NVIDIA device"):
        readiness.check_ready("cuda:3", tmp_path)


def test_a_judge_that_cannot_judge(examined: Callable[..., None], tmp_path: Path) -> None:
    examined(CAGE, GPU, cpu=False)
    with pytest.raises(Missing, match=r"on cpu here\.\n  cage: no namespaces\. install bubblewrap$"):
        readiness.check_ready("cpu", tmp_path)
    examined(GPU)
    readiness.check_ready("cpu", tmp_path)
    with pytest.raises(Missing, match="gpu: torch is the CPU build"):
        readiness.check_judge("cuda")
    examined(text="Traceback: no module named torch")
    with pytest.raises(Missing, match="the judge does not start: Traceback"):
        readiness.check_judge("cpu")


def test_the_judge_is_examined_while_the_stack_starts(examined: Callable[..., None], tmp_path: Path) -> None:
    examined(CAGE, cpu=False)
    examination = readiness.Examination("cpu")
    examination.wait()  # a stack that was joined has been examined by its owner
    examination.begin(tmp_path)
    with pytest.raises(Missing, match="cage: no namespaces"):
        examination.wait()
    examined()
    examination = readiness.Examination("cpu")
    examination.begin(tmp_path)
    examination.wait()


def test_a_gpu_that_is_not_there_is_refused_before_a_stack_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(readiness, "gpus", list)
    with pytest.raises(Missing, match="there is no NVIDIA device"):
        readiness.Examination("cuda:0").begin(tmp_path)


def test_a_judge_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("doctor", 1.0)

    monkeypatch.setattr(evaluator_process, "capture", hang)
    with pytest.raises(Missing, match="did not end within 60 s"):
        readiness.check_judge("cpu")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 5 * 10**8))
    with pytest.raises(Missing, match=r"has 0\.5 GB free and needs 1\.1"):
        readiness.check_ready("cpu", tmp_path / "data")


def test_a_list_needs_little_room_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 10**6))
    assert commands.run(["runs", "--data", str(tmp_path / "data")]) == ExitCode.INTERNAL
    assert "has 0.0 GB free and needs 0.1: make room" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(readiness.os, "access", lambda *_: False)
    with pytest.raises(Missing, match="is not writable: set WARPWRIGHT_DATA_DIR"):
        readiness.check_disk(tmp_path)


def test_a_port_in_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert commands.run(["serve", "--port", str(port), "--data", str(tmp_path)]) == ExitCode.BAD_USAGE
    assert f"127.0.0.1:{port} is in use by another program" in " ".join(capfd.readouterr().err.split())
    with pytest.raises(BadUsage, match="cannot be listened on"):
        readiness.check_port("192.0.2.1", 0)


def test_optimize_asks_for_nothing_before_the_judge_is_examined(
    examined: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    api: FakeApi,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def stack(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(url=api.url, check=lambda: None)

    monkeypatch.setattr(sessions, "Stack", stack)
    examined(CAGE, cpu=False)
    problem = tmp_path / "p.py"
    problem.write_text("x = 1\n")
    asked = ["optimize", str(problem), "--device", "cpu", "--data", str(tmp_path / "data")]
    assert commands.run(asked) == ExitCode.INTERNAL
    assert "cage: no namespaces. install bubblewrap" in " ".join(capfd.readouterr().err.split())
    assert api.bodies == []


def test_doctor_agrees_with_the_judge(examined: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    examined(cpu=False, text="judging on cpu: no\njudging on cuda: no")
    assert doctor.doctor(as_json=False) == ExitCode.NOT_PASSED
    shown = capfd.readouterr()
    assert "can optimise" not in shown.err
    examined(text="judging on cpu: yes\njudging on cuda: no")
    if doctor.doctor(as_json=False) == ExitCode.OK:  # where the rest of the stack is there, too
        assert "This machine can optimise for cpu." in capfd.readouterr().err


def test_sizes_travel_with_the_problem(api: FakeApi, tmp_path: Path) -> None:
    problem = tmp_path / "p.py"
    problem.write_text("x = 1\n")
    sizes = ["--size", "rows=64", "--size", "rows=7, scale=0.5"]
    commands.run(["optimize", str(problem), "--server", api.url, *sizes, "--output", str(tmp_path / "best.py")])
    assert api.bodies[0]["sizes"] == [{"rows": 64}, {"rows": 7, "scale": 0.5}]
    assert read_sizes("dtype=bfloat16, causal=True") == {"dtype": "bfloat16", "causal": True}
    for wrong in ("", "rows", "=3", "a b=3", "rows=1,rows=2"):
        with pytest.raises(BadUsage, match="NAME=VALUE"):
            read_sizes(wrong)


def test_an_agent_s_tools_tell_what_keeps_the_judge_from_working(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(device: str, folder: Path) -> None:
        raise Missing(f"{device} cannot be judged on: {folder.name}")

    monkeypatch.setattr(readiness, "check_ready", refuse)
    examination = readiness.Examination("cpu")
    examination.begin_all(tmp_path)
    with Client("http://127.0.0.1:9") as client:
        session = agents.guarded(Session(client, lambda: None, None), examination)

        def told() -> bool:
            try:
                session.check()
            except Missing as error:
                return "cpu cannot be judged on" in str(error)
            return False

        assert wait_until(told)
