"""References that admission accepts, or refuses with what to do."""

from __future__ import annotations

import pytest

from evaluator.problem import read_problem
from evaluator.stages.admit import admit
from evaluator.stages.judge import Judge
from evaluator.types import Problem, Verdict
from tests.evaluator.rooms import candidate, eager_only
from tests.evaluator.test_reported_cases import assert_judged, copy_of, function, module, refusal

LABELLED = "import dataclasses\n@dataclasses.dataclass\nclass Stats:\n    mean: object\n"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (function("(x * 2, Stats(x.mean(-1)))", "torch.randn(16, 8)", before=LABELLED), "a Stats (output[1])"),
        (function("(x * 2, {'m': x.mean(-1).numpy()})", "torch.randn(16, 8)"), "a ndarray (output[1]['m'])"),
        (function("(x * 2, list((x * 2).flatten()))", "torch.randn(16, 32)"), "a list of 512 items (output[1])"),
    ],
    ids=["dataclass", "array", "long list"],
)
def test_results_that_cannot_be_compared_are_refused(judge: Judge, problem: Problem, words: str) -> None:
    reason = refusal(judge, problem)
    assert words in reason, reason
    assert "return tensors" in reason


def test_plain_values_beside_tensors_are_compared(judge: Judge) -> None:
    problem = function("(x * 2, 1.5j, x.dtype, {0: x + 1})", "torch.randn(16, 8)")
    assert_judged(judge, problem)
    for right, wrong in (("1.5j", "7j"), ("{0:", "{'0':"), ("x.dtype", "torch.float64")):
        kernel = candidate(copy_of(problem).replace(right, wrong), head="")
        found = judge.judge(problem, kernel, eager_only(judge, problem))
        assert found.verdict is Verdict.INCORRECT_SHAPE, (found.verdict, found.reason)


ASSIGNED = """import torch
TRAIN = True
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(32))
    def forward(self, x):
        self.mean = self.mean.lerp(x.mean(0), 0.5)
        return x - self.mean
def get_inputs():
    return [torch.randn(64, 32)]
"""


def test_a_buffer_that_forward_assigns_is_judged(judge: Judge) -> None:
    assert_judged(judge, read_problem(ASSIGNED, "assigned"), ", 0.5) -> , 0.4)")


@pytest.mark.parametrize("state", ["torch.randperm(8)", "__import__('random').sample(range(8), 8)"])
def test_constructors_that_keep_random_values_outside_of_the_state_are_refused(judge: Judge, state: str) -> None:
    assert "register each as a buffer" in refusal(judge, module(f"self.order = {state}", "x[:, self.order] * 2"))


def test_inputs_that_change_without_a_word_are_refused(judge: Judge) -> None:
    problem = function("y + torch.relu_(x).sum(-1, keepdim=True)", "torch.randn(16, 8), torch.randn(16, 8)", "y, x")
    assert "changes its input 1 in place" in refusal(judge, problem)


def test_tensors_in_a_list_are_changed(judge: Judge) -> None:
    text = "import torch\nMUTATES = [0]\ndef reference(states, x):\n    for state in states:\n        state.mul_(0.5)"
    text += ".add_(x)\n    return states[0] + states[1]\ndef get_inputs():\n"
    text += "    return [[torch.randn(16, 8), torch.randn(16, 8)], torch.randn(16, 8)]\n"
    assert_judged(judge, read_problem(text, "states"), "in states: -> in (states[0], states[1].clone()):")


def test_statistics_below_zero_that_make_nan_are_not_drawn(judge: Judge) -> None:
    problem = module("self.register_buffer('v', torch.zeros(8))", "x * torch.rsqrt(self.v + 1e-3)")
    assert_judged(judge, problem, "(self.v + -> (self.v * 1.1 +")


def test_a_mask_among_the_parameters_stays_a_mask(judge: Judge) -> None:
    mask = "torch.triu(torch.full((8, 8), -torch.inf), 1)"
    problem = module(f"self.m = torch.nn.Parameter({mask}, requires_grad=False)", "(x[:8] + self.m).softmax(-1)")
    assert_judged(judge, problem, "x[:8] + self.m -> x[:8] + 2 * self.m")


def test_integers_seen_as_other_integers_are_computed_in_float64(judge: Judge) -> None:
    problem = function(
        "(x.view(torch.uint8) & 15) * y", "torch.randint(0, 1 << 30, (9, 8)).int(), torch.randn(32)", "x, y"
    )
    assert admit(judge, problem).evidence["oracle"] == "float64"


def test_a_constant_of_the_largest_integer_is_judged(judge: Judge) -> None:
    largest = "torch.full((8,), torch.iinfo(torch.int64).max)"
    assert_judged(judge, function("torch.minimum(x, y) * 2", f"torch.randint(0, 1000, (16, 8)), {largest}", "x, y"))
