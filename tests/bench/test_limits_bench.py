"""Honest orders of additions keep today's limits on every set of values; careless ones do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.compiles
def test_honest_implementations_are_within_the_limits(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.limits", "--output", str(tmp_path / "limits.jsonl")]
    quick = {**os.environ, "QUICK": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quick, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
