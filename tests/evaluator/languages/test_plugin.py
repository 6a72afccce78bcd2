"""A language is added to a copy of the checkout: one folder and two lines, and everything else follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = Path(__file__).with_name("plugin")

pytestmark = [pytest.mark.compiles, pytest.mark.timeout(400)]
ROOMS = ("db", "evaluator", "evolution", "prompts", "runtime", "service")
MOST_FILES = 5
LINES = (
    (
        "evaluator/types.py",
        "\n\n\nclass Domain",  # after the last language
        '\n    TORCHSCRIPT = "torchscript"\n\n\nclass Domain',
    ),
    (
        "evaluator/languages/__init__.py",
        "from evaluator.languages.triton import TritonAdapter\n",
        "from evaluator.languages.torchscript import TorchscriptAdapter\n"
        "from evaluator.languages.triton import TritonAdapter\n",
    ),
    (
        "evaluator/languages/__init__.py",
        "    Language.TORCH: TorchAdapter(),\n",
        "    Language.TORCHSCRIPT: TorchscriptAdapter(),\n    Language.TORCH: TorchAdapter(),\n",
    ),
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of `plugin/use_it.py` in a copy with the plug-in."""
    copy = tmp_path_factory.mktemp("checkout")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room)  # with its bytecode, which saves seconds
    changed = {copy / name for name, _, _ in LINES}
    for name, old, new in LINES:
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        (copy / name).write_text(text.replace(old, new), encoding="utf-8")
    folder = copy / "evaluator" / "languages" / "torchscript"
    shutil.copytree(PLUGIN / "torchscript", folder, ignore=shutil.ignore_patterns("__pycache__"))
    changed |= set(folder.iterdir())
    assert len(changed) <= MOST_FILES
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(PLUGIN / "use_it.py")],
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    answers: dict[str, Any] = json.loads(ran.stdout)
    return answers


def test_it_is_detected_built_and_judged(found: dict[str, Any]) -> None:
    assert found["language"] == "torchscript"
    assert found["signature"]
    assert found["built"]
    assert (found["right"], found["wrong"], found["broken"]) == ("PASSED", "INCORRECT_VALUES", "BUILD_ERROR")


def test_it_has_a_niche_notes_and_a_guide(found: dict[str, Any]) -> None:
    assert found["niche"] == "plain/reduce/plain"
    assert any("script the whole row function" in note for note in found["notes"])
    assert "## Writing TorchScript" in found["prompt"]
    assert "@torch.jit.script" in found["prompt"]


def test_it_is_shown_and_downloaded(found: dict[str, Any]) -> None:
    assert "torchscript" in found["api"]
    assert "torchscript, proposed by file" in found["download"]
    compile(found["download"], "rmsnorm_cpu.py", "exec")
    assert '<span class="nd">@torch</span>' in found["page"]
