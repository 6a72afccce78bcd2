"""Whole calls of a model with and without kernels, in turn."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bench import end_to_end
from bench.end_to_end import difference, measure, tensors, timed_by, tolerance_of
from tests.support.warm_python import warm_python
from warpwright.cli import commands
from warpwright.errors import ExitCode

RUN = """import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()).eval()
x = torch.randn(4, 16)


def call():
    return {"made": model(x)}


if __name__ == "__main__":
    with torch.no_grad():
        call()
"""
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the command that captures to `parts`, with a Python that has torch loaded."""
    with warm_python(tmp_path_factory.mktemp("warm")) as executable:
        yield ["capture", "--python", str(executable), "-o", "parts"]


@pytest.fixture(scope="module")
def captured(capture: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a script whose parts were captured."""
    made = tmp_path_factory.mktemp("captured")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        Path("run.py").write_text(RUN, encoding="utf-8")
        assert commands.run([*capture, "run.py"]) == ExitCode.OK
        own = Path("parts/sequential.py").read_text(encoding="utf-8").replace("class Model(", "class ModelNew(")
        Path("own.py").write_text(own, encoding="utf-8")
    return made


@pytest.fixture
def folder(captured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that folder, as the working folder."""
    shutil.copytree(captured, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "put_back", raising=False)
    return tmp_path


def compared(monkeypatch: pytest.MonkeyPatch, *kernels: str, script: str = "run.py", arguments: str = "") -> int:
    rest = ["--", arguments] if arguments else []
    monkeypatch.setattr(sys, "argv", ["end_to_end", script, "parts", *kernels, "--rounds", "2", *rest])
    return end_to_end.main()


def test_the_sides_alternate_and_the_ratio_is_before_over_after() -> None:
    sides: list[bool] = []

    def call() -> None:
        end = time.process_time() + (0.001 if sides[-1] else 0.004)
        while time.process_time() < end:
            pass

    found = measure(call, sides.append, 6)
    assert sides[:4] == [True, False, False, True]
    assert len(sides) == 2 * (6 + 2)
    assert found["before_ms"] > found["after_ms"] > 0
    assert found["interval"][0] <= found["ratio"] <= found["interval"][1]
    assert found["ratio"] > 1


def test_outputs_are_compared_whole() -> None:
    one = torch.tensor([3.0, 4.0])
    assert tensors({"first": one, "rest": [(one, None)]}, torch) == [one, one]
    assert difference([one, one], [one, one]) == 0.0
    assert difference([one, one + torch.tensor([0.0, 0.5])], [one, one]) == pytest.approx(0.1)
    assert difference([torch.tensor([NAN, INF, 2.0])], [torch.tensor([NAN, INF, 2.0])]) == 0.0
    for made in ([], [one, one], [one.double()], [one[:1]], [torch.tensor([NAN, 4.0])], [torch.tensor([INF, 4.0])]):
        assert difference(made, [one]) == INF
    assert difference([torch.tensor([INF, 1.0])], [torch.tensor([-INF, 1.0])]) == INF
    assert difference([torch.tensor([1.0])], [torch.tensor([0.0])]) == INF


def test_several_threads_are_timed_by_the_wall_clock() -> None:
    """Processor time adds them up."""
    model = torch.nn.Linear(1, 1)
    assert timed_by(model, 1, torch) == ("processor", time.process_time)
    assert timed_by(model, 2, torch) == ("wall", time.perf_counter)
    assert tolerance_of(model, []) < tolerance_of(model, [torch.zeros(1, dtype=torch.float16)])
    assert tolerance_of(model, []) < tolerance_of(model.to(torch.bfloat16), [torch.zeros(1)])


@pytest.mark.compiles  # an interpreter with torch captures the script
def test_a_model_is_compared_with_and_without_kernels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert compared(monkeypatch, "sequential=own.py") == 0
    row = json.loads(capfd.readouterr().out)
    assert row["before_ms"] > 0
    assert (row["clock"], row["difference"], row["places"], row["answered"]) == ("processor", 0.0, 1, 1)


@pytest.mark.compiles
def test_a_script_with_arguments_and_classes_of_its_own_is_compared(
    capture: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    own = RUN.replace(
        "model = torch.nn.Sequential(", "import sys\n\n\nclass Net(torch.nn.Sequential):\n    pass\n\n\nmodel = Net("
    )
    Path("own_run.py").write_text(own.replace("randn(4, 16)", "randn(int(sys.argv[1]), 16)"), encoding="utf-8")
    assert commands.run([*capture, "--overwrite", "own_run.py", "4"]) == ExitCode.OK
    kernel = Path("parts/net.py").read_text(encoding="utf-8").replace("class Model(", "class ModelNew(")
    Path("own.py").write_text(kernel, encoding="utf-8")
    capfd.readouterr()
    assert compared(monkeypatch, "net=own.py", script="own_run.py", arguments="4") == 0
    assert json.loads(capfd.readouterr().out)["answered"] == 1


@pytest.mark.compiles
def test_a_ratio_that_says_nothing_of_the_kernels_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = Path("own.py").read_text(encoding="utf-8").replace("return ", "return 1.01 * ", 1)
    Path("wrong.py").write_text(wrong, encoding="utf-8")
    Path("larger.py").write_text(RUN.replace("randn(4", "randn(5"), encoding="utf-8")
    Path("other.py").write_text(RUN.replace("GELU", "SiLU"), encoding="utf-8")
    Path("random.py").write_text(RUN.replace("model(x)", "model(torch.randn(4, 16))"), encoding="utf-8")
    for words, script, kernel in (
        ("outputs with kernels differ by 0.01 of their norm, more than 0.0001", "run.py", "wrong.py"),
        ("the kernel of sequential answered no call", "larger.py", "own.py"),
        ("no module of the model is like sequential", "other.py", "own.py"),
        ("two calls without kernels differ by", "random.py", "own.py"),
    ):
        assert compared(monkeypatch, f"sequential={kernel}", script=script) == 1
        assert words in capfd.readouterr().err


@pytest.mark.compiles
def test_what_cannot_be_compared_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("short.py").write_text("model = None\n", encoding="utf-8")
    for words, script, kernel in (
        ("kernels are named PART=KERNEL.py", "run.py", "own.py"),
        ("kernels are named PART=KERNEL.py", "run.py", "sequential=absent.py"),
        ("short.py must define model, and call()", "short.py", "sequential=own.py"),
    ):
        with pytest.raises(SystemExit):
            compared(monkeypatch, kernel, script=script)
        assert words in capfd.readouterr().err
