"""The Makefile says what it can do, and never lets an unpinned torch in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = (
    "setup", "demo", "serve", "fmt", "check", "house", "test", "test-fast", "timings", "test-gpu", "soak", "docs",
    "clean",
)  # fmt: skip


def make(*arguments: str) -> str:
    done = subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_names_every_target() -> None:
    shown = make("help")
    for target in (*TARGETS, "bench-%"):
        assert f"make {target}" in shown


@pytest.mark.parametrize("target", [*TARGETS, "bench-anything"])
def test_targets_can_be_planned(target: str) -> None:
    assert make("--dry-run", target, "NO_INSTALL=1")


def test_no_install_uses_the_interpreter_as_it_is() -> None:
    plan = make("--dry-run", "test-gpu", "NO_INSTALL=1", "PYTHON=python3")
    assert "setup.sh" not in plan
    assert "python3 -m pytest" in plan


def test_torch_is_pinned_wherever_pip_installs() -> None:
    assert re.search(r"^torch==2\.13\.0$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    setup = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8")
    for line in setup.splitlines():
        if "pip install" in line and not line.lstrip().startswith("#"):
            assert "-c " in line, line


def test_ci_runs_what_a_user_runs() -> None:
    assert "exec make check test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
