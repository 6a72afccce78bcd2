"""The demo: an example that gains on the device at hand, and a run without a champion as an answer."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "scripts" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--seconds", "5"])
    return made


@pytest.mark.parametrize(("code", "status"), [(0, 0), (4, 0), (2, 2), (3, 3), (130, 130)])
def test_only_a_run_without_a_champion_becomes_a_success(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, status: int
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(subprocess, "run", run)
    assert demo.main() == status
    assert ("that is the answer of this run" in capsys.readouterr().out) is (code == 4)
    assert asked[0][-2:] == ["--seconds", "5"]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_each_device_has_an_example(demo: ModuleType, device: str) -> None:
    name = demo.EXAMPLES[demo.kind_of(device)]
    assert (ROOT / "examples" / "problems" / f"{name}.py").is_file()
