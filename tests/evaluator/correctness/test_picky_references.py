"""A reference that accepts values in one call and not in the next costs no Candidate its verdict."""

from __future__ import annotations

import pytest
import torch

from evaluator.errors import ChildError, UnsupportedCase
from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Language, Verdict
from tests.evaluator.rooms import eager_only

PICKY = """import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        if not bool(x[:24].isfinite().all()):
            raise ValueError("not in this half")
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
"""
RECIPE = """

def get_inputs():
    return [torch.randn(48, 256)]
"""


def test_a_kernel_that_fails_where_the_reference_does_is_judged_without_such_values(judge: Judge) -> None:
    task = read_problem(PICKY.format(name="Model") + RECIPE, "picky")
    one = Candidate(source=PICKY.format(name="ModelNew"), language=Language.TORCH, proposer="test")
    for _ in range(3):
        judge.session.references.exclusions.of(task).clear()
        found = judge.judge(task, one, eager_only(judge, task))
        assert found.verdict is Verdict.PASSED, found.reason


def test_what_the_reference_takes_nobody_else_may_fail_on(judge: Judge) -> None:
    task = read_problem(PICKY.format(name="Model") + RECIPE, "picky")
    fault = ChildError("ValueError", "not in this half")
    judge.session.references.exclusions.of(task).clear()
    with judge.session.references.start(task) as reference:
        oracle = Oracle(task, reference, {}, torch.Generator().manual_seed(3))
        made = oracle.inputs()
        low, high = made.tensors[0].clone(), made.tensors[0].clone()
        low[40, 3] = high[3, 3] = torch.nan
        oracle.leave_out_if_failing(made.tree, [(low,), made.tensors], fault)
        for label in (values.NOT_FINITE, values.UNUSUAL):
            with pytest.raises(UnsupportedCase) as found:
                oracle.leave_out_if_failing(made.tree, [(low,), (high,)], fault)
            assert found.value.label == label
            reference.left_out.add(label)
        oracle.leave_out_if_failing(made.tree, [(low,), (high,)], fault)  # nothing is left to be left out
