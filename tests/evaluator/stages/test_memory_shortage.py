"""Memory that runs out while others have it is nobody's fault; else whoever runs out of it twice is believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from evaluator.errors import EvaluatorError, Rejection, ShortOfMemory
from evaluator.problem import read_problem
from evaluator.stages.admit import admit
from evaluator.stages.judge import Judge
from evaluator.stages.memory_shortage import Patience
from evaluator.types import Candidate, DeviceKind, Language, Stage, Verdict
from tests.evaluator.rooms import eager_only

GREEDY = '''"""A reference that needs more memory than there is for a single row."""
import torch

WORKLOADS = [{"name": "small", "rows": 64, "hidden": 256}, {"name": "other", "rows": 48, "hidden": 256}]


class Model(torch.nn.Module):
    def forward(self, x):
        if len(x) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return x * 2


def get_inputs(rows=64, hidden=256):
    return [torch.randn(rows, hidden)]
'''
RIGHT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + x\n"


@pytest.fixture
def doubting(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A judge whose device others may use, as a GPU; they have none of its memory. It does not wait for them."""
    monkeypatch.setattr(judge, "patience", Patience(wait_s=0.0))
    monkeypatch.setattr(judge.session.references, "trusts_memory_errors", False)
    device = replace(judge.device, facts={**judge.device.facts, "memory_bytes": 80 << 30})
    monkeypatch.setattr(judge.backend, "describe", lambda: device)
    return judge


def test_a_reference_that_runs_out_of_memory_twice_is_believed(doubting: Judge) -> None:
    problem = read_problem(GREEDY, "greedy")
    right = Candidate(source=RIGHT, language=Language.TORCH, proposer="test")
    found = doubting.judge(problem, right, eager_only(doubting, problem))
    assert found.verdict is Verdict.PASSED, found.reason
    assert not doubting.session.references.trusts_memory_errors
    always = read_problem(GREEDY.replace("len(x) == 1", "True"), "greedier")
    assert "needs too much memory" in admit(doubting, always).reason


def test_while_others_have_the_memory_nothing_is_said(doubting: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubting.backend, "held_by_others", lambda: 40 << 30)
    problem = read_problem(GREEDY, "greedy")
    right = Candidate(source=RIGHT, language=Language.TORCH, proposer="test")
    found = doubting.judge(problem, right, eager_only(doubting, read_problem(GREEDY.replace("== 1", "== 0"), "plain")))
    assert found.verdict is Verdict.INTERNAL_ERROR
    assert "other processes held 40 GiB of it: judge again when they are done" in found.reason
    assert admit(doubting, read_problem(GREEDY.replace("len(x) == 1", "True"), "greedier")).verdict is (
        Verdict.INTERNAL_ERROR
    )


OUT = Rejection(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, "checking small: OutOfMemoryError")
ENDED = Rejection(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, "its process ended", signal=9, exit_code=None)
NO_ROOM = Rejection(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, "checking small: MemoryError", error="MemoryError")


def assert_tried(judge: Judge, raised: list[Exception], ends: type[Exception] | None, times: int) -> None:
    """Work that raises these errors, one after the other, is done so many times, and ends so (None: well)."""
    errors, done = iter(raised), []

    def work() -> Any:
        done.append(1)
        for error in errors:
            raise error
        return "done"

    if ends is None:
        assert judge.retry_on_shortage(work) == "done"
    else:
        with pytest.raises(ends):
            judge.retry_on_shortage(work)
    assert len(done) == times


@pytest.mark.parametrize(
    ("raised", "kind", "others", "ends", "times"),
    [
        ([OUT], DeviceKind.CUDA, 0, None, 2),
        ([OUT, OUT], DeviceKind.CUDA, 0, Rejection, 2),
        ([torch.OutOfMemoryError("ours")], DeviceKind.CUDA, 0, None, 2),
        ([torch.OutOfMemoryError("ours")] * 2, DeviceKind.CUDA, 0, EvaluatorError, 2),
        ([ShortOfMemory("the reference's")], DeviceKind.CUDA, 30 << 30, EvaluatorError, 1),
        ([OUT], DeviceKind.CUDA, 30 << 30, EvaluatorError, 1),
        ([OUT], DeviceKind.CPU, 0, Rejection, 1),
        ([ENDED], DeviceKind.CUDA, 30 << 30, Rejection, 1),
        ([NO_ROOM], DeviceKind.CUDA, 30 << 30, Rejection, 1),
        ([Rejection(Verdict.TIMEOUT, Stage.TIMING, "slow")], DeviceKind.CUDA, 30 << 30, Rejection, 1),
    ],
)
def test_whose_fault_it_is(
    doubting: Judge,
    monkeypatch: pytest.MonkeyPatch,
    raised: list[Exception],
    kind: DeviceKind,
    others: int,
    ends: type[Exception] | None,
    times: int,
) -> None:
    monkeypatch.setattr(doubting.backend, "kind", kind)
    monkeypatch.setattr(doubting.backend, "held_by_others", lambda: others)
    assert_tried(doubting, raised, ends, times)


@pytest.mark.parametrize(
    ("raised", "held", "ends", "times"),
    [
        ([OUT], [30, 30, 0], None, 2),
        ([OUT, OUT], [30, 0, 0], None, 3),
        ([OUT, OUT], [30, 0, 30], EvaluatorError, 2),
        ([OUT, OUT, OUT], [30, 0, 0, 0], Rejection, 3),
        ([OUT, OUT], [0, 30], EvaluatorError, 2),
        ([OUT, ENDED], [0], Rejection, 2),
    ],
)
def test_others_are_waited_for_and_what_runs_out_beside_them_is_nobodys_fault(
    doubting: Judge,
    monkeypatch: pytest.MonkeyPatch,
    raised: list[Exception],
    held: list[int],
    ends: type[Exception] | None,
    times: int,
) -> None:
    """`held` are the GiB that others hold, each time when that is asked."""
    monkeypatch.setattr(doubting.backend, "kind", DeviceKind.CUDA)
    monkeypatch.setattr(doubting, "patience", Patience(poll_s=0.0))
    asked = iter(held)
    monkeypatch.setattr(doubting.backend, "held_by_others", lambda: next(asked) << 30)
    assert_tried(doubting, raised, ends, times)
    assert not list(asked)
