"""The judge's child process: what it gets of this one's environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workers.judge_process import JudgeProcess

ECHO = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "ok": True, "result": sorted(os.environ)}), flush=True)
"""


def test_the_judge_gets_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "echo.py"
    program.write_text(ECHO)
    secrets = {
        "WARPWRIGHT_API_KEY",
        "WARPWRIGHT_DATABASE_URL",
        "WARPWRIGHT_REDIS_URL",
        "WARPWRIGHT_MODELS",
        "MODEL_KEY",
    }
    for name in (*secrets, "WARPWRIGHT_NCU"):
        monkeypatch.setenv(name, "x")
    judge = JudgeProcess("cpu", command=(sys.executable, str(program)), hidden=("MODEL_KEY",))
    try:
        names = set(judge.request("environment", deadline_s=30.0))
    finally:
        judge.kill()
    assert "WARPWRIGHT_NCU" in names
    assert not secrets & names
