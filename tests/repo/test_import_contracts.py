"""The import rules of pyproject.toml hold, and a planted violation is caught."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("evaluator", "synthesis", "evolution", "prompts", "db", "runtime", "workers", "service", "warpwright")

PLANTS = {
    "the judge reaches up": ("evaluator/planted.py", "import evolution.types\n", "Imports point only downwards"),
    "the oracle reaches up": (
        "evaluator/oracle/planted.py",
        "import evaluator.stages.judge\n",
        "The evaluator's packages import only downwards",
    ),
    "a module outside of the layers": (
        "evaluator/outside.py",
        "import evaluator.types\n",
        "The evaluator's packages import only downwards",
    ),
    "siblings know each other": ("workers/planted.py", "import service\n", "Imports point only downwards"),
    "the judge speaks HTTP": ("evaluator/speaking.py", "import fastapi\n", "The judge runs alone"),
    "evolution looks at the clock": ("evolution/planted.py", "import time\n", "Evolution is pure"),
    "the wheel imports a room": ("warpwright/planted.py", "import runtime\n", "warpwright talks HTTP"),
    "the API loads torch": ("service/planted.py", "import torch\n", "never load torch"),
    "a router renders a page": ("service/routers/planted.py", "import service.pages\n", "Inside service"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "lint_imports.py")],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__", "static", "templates"))
    return folder


def test_the_contracts_hold(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.fixture(scope="module")
def broken(copy: Path) -> dict[str, str]:
    """Plant every violation, and return what the linter prints of each broken contract."""
    for where, code, _ in PLANTS.values():
        (copy / where).write_text(code, encoding="utf-8")
    done = lint(copy)
    for where, _, _ in PLANTS.values():
        (copy / where).unlink()
    assert done.returncode == 1, done.stdout + done.stderr
    _, _, text = done.stdout.partition("Broken contracts\n")
    parts = re.split(r"^(.+)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_violation_is_caught(broken: dict[str, str], name: str) -> None:
    where, _, contract = PLANTS[name]
    (told,) = (text for title, text in broken.items() if contract in title)
    assert where.removesuffix(".py").replace("/", ".") in told


def test_the_wheel_carries_warpwright_alone() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["warpwright"]
