"""Judging avoids slow imports. torch loads sympy for rare functions, which takes a second or two."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGES = """
import sys
from evaluator.stages.judge import Judge
from evaluator.serve import make_backend
from tests.evaluator.rooms import eager_only, forward, problem

judge, task = Judge(make_backend("cpu")), problem()
try:
    found = judge.judge(task, forward("return right(x, self.weight) * 1.1"), eager_only(judge, task))
finally:
    judge.close()
print(found.verdict, [name for name in ("sympy", "torch._dynamo", "torch._inductor") if name in sys.modules])
"""


@pytest.mark.judge
def test_checking_a_candidate_imports_nothing_that_takes_long() -> None:
    command = [sys.executable, "-c", JUDGES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=True)
    assert done.stdout.split() == ["INCORRECT_VALUES", "[]"]
