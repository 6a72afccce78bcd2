"""Sizes that no workload has and the reference does not survive are left out; the others are judged as ever."""

from __future__ import annotations

import pytest

from evaluator.inputs import values
from evaluator.problem import read_problem
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Language, Verdict
from tests.evaluator.rooms import eager_only

OTHER = ', {"name": "other", "rows": 48, "hidden": 256}'
SPOILED = '''"""A reference that loses its device for a single row, as a failed assertion on a GPU does."""
import torch

WORKLOADS = [{"name": "small", "rows": 64, "hidden": 256}, {"name": "other", "rows": 48, "hidden": 256}]
spoiled = []


class AcceleratorError(RuntimeError):
    pass


class Model(torch.nn.Module):
    def forward(self, x):
        if len(x) == 1 or spoiled:
            spoiled.append(1)
            raise AcceleratorError("device-side assert triggered")
        return x * 2


def get_inputs(rows=64, hidden=256):
    return [torch.randn(rows, hidden)]
'''
KERNEL = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"


def test_a_reference_that_loses_its_device(judge: Judge) -> None:
    problem = read_problem(SPOILED, "spoiled")
    right = Candidate(source=KERNEL.format("x + x"), language=Language.TORCH, proposer="test")
    wrong = Candidate(source=KERNEL.format("x + 1"), language=Language.TORCH, proposer="test")
    found = judge.judge(problem, right, eager_only(judge, problem))
    assert found.verdict is Verdict.PASSED, found.reason
    assert "rows=1" in found.evidence["correctness"]["skipped"]
    assert judge.session.references.exclusions.of(problem) == {"rows=1"}
    assert judge.judge(problem, wrong, eager_only(judge, problem)).verdict is Verdict.INCORRECT_VALUES
    assert confirm(judge, problem, right, None, eager_only(judge, problem)).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("lost", "label"),
    [("not bool(x.isfinite().all())", values.NOT_FINITE), ("float(x.abs().max()) > 50", values.UNUSUAL)],
    ids=["by a NaN", "by large ones"],
)
def test_a_reference_that_loses_its_device_by_values(judge: Judge, lost: str, label: str) -> None:
    source = SPOILED.replace("len(x) == 1", lost).replace(OTHER, "")  # values are drawn for one workload, too
    assert OTHER not in source
    problem = read_problem(source, "by-values")
    right = Candidate(source=KERNEL.format("x + x"), language=Language.TORCH, proposer="test")
    wrong = Candidate(source=KERNEL.format("x + x.sign()"), language=Language.TORCH, proposer="test")
    found = judge.judge(problem, right, eager_only(judge, problem))
    assert found.verdict is Verdict.PASSED, found.reason
    assert any(one.endswith(label) for one in found.evidence["correctness"]["skipped"])
    assert label in judge.session.references.exclusions.of(problem)
    assert judge.judge(problem, wrong, eager_only(judge, problem)).verdict is Verdict.INCORRECT_VALUES


def test_a_reference_that_loses_its_device_by_what_its_recipe_makes_is_refused(judge: Judge) -> None:
    problem = read_problem(SPOILED.replace("len(x) == 1", "True"), "by-draws")
    right = Candidate(source=KERNEL.format("x + x"), language=Language.TORCH, proposer="test")
    assert judge.judge(problem, right, eager_only(judge, problem)).verdict is Verdict.INVALID_REFERENCE
