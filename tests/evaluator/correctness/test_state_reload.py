"""Loads into modules that have been called, two of them side by side; outputs that nobody has written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.adversarial import suite
from tests.evaluator.rooms import eager_only, forward, problem

# An output is there when the next call begins.
WRITTEN_LATER = forward(
    "y = torch.empty_like(x)",
    "for late, arguments in vars(self).pop('left', ()):",
    "    late.copy_(right(*arguments))",
    "self.left = [(y, (x, self.weight))]",
    "return y",
)


@pytest.fixture(scope="module")
def court(judge: Judge) -> Iterator[suite.Court]:
    with suite.Court(judge, protocol=suite.BRIEF_PROTOCOL) as one:
        yield one


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("fold_shared_by_modules", "two modules side by side"),
        ("int8_parameter_unpacked_once", "new parameters"),
        ("complex_parameter_kept", "new parameters"),
        ("maximum_before_the_scale", "parameters of either sign"),
        (
            "plans_of_one_version",
            "a draw, after a call with rows=1 in the same module, which was loaded after its first calls",
        ),
        ("packed_while_allclose", "every element changed by a 100000th, of every parameter"),
    ],
)
def test_what_a_module_prepared_is_stale_after_a_load(court: suite.Court, name: str, inputs: str) -> None:
    case = next(case for case in suite.cases("cheats") if case.name == name)
    found = court.try_case(case)
    assert found.verdict is Verdict.INCORRECT_VALUES
    assert found.evidence["inputs"] == inputs, found.reason


def test_memory_that_nobody_had_written_is_told_as_such(judge: Judge) -> None:
    task = problem()
    found = judge.judge(task, WRITTEN_LATER, eager_only(judge, task))
    assert found.verdict is Verdict.INCORRECT_VALUES
    assert "not written when the call returned" in found.reason


def test_a_failure_names_the_sizes_that_it_happened_with(judge: Judge) -> None:
    task = problem()
    once = forward(
        "self.seen = getattr(self, 'seen', x.shape)", "assert x.shape == self.seen", "return right(x, self.weight)"
    )
    found = judge.judge(task, once, eager_only(judge, task))
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert "after a call with" in found.reason
    assert "AssertionError" in found.reason
