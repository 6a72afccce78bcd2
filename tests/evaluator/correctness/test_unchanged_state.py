"""Parameters and buffers that the reference leaves alone stay as they are loaded, their dtypes included."""

from __future__ import annotations

import pytest

from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.evaluator.rooms import candidate, eager_only
from tests.evaluator.test_reported_cases import copy_of, module

NORM = module("self.norm = torch.nn.BatchNorm1d(8)", "self.norm(x)")
SCALE = module("self.w = torch.nn.Parameter(torch.ones(8))", "x * self.w")


@pytest.mark.parametrize(
    ("problem", "line", "result", "words"),
    [
        (NORM, "self.norm.num_batches_tracked += 1", "self.norm(x)", "changes the buffer norm.num_batches_tracked"),
        (SCALE, "self.w.data = self.w.data.double()", "(x * self.w).float()", "changes the parameter w"),
    ],
)
def test_a_kernel_that_changes_them_is_refused(judge: Judge, problem, line: str, result: str, words: str) -> None:
    head, _, tail = copy_of(problem).partition("        return ")
    source = f"{head}        {line}\n        return {result}\n" + tail.partition("\n")[2]
    found = judge.judge(problem, candidate(source, head=""), eager_only(judge, problem))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.verdict, found.reason)
    assert words in found.reason
