"""Buffers that forward moves and on which outputs do not depend: compared after a round that is like any timed one."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.correctness.buffers import compare
from evaluator.devices.cpu import CpuBackend
from evaluator.errors import Rejection
from evaluator.languages import detect
from evaluator.subject import Subject
from evaluator.types import Candidate, Stage, Verdict
from tests.adversarial import suite
from tests.evaluator.rooms import QUICK, eager_only, workloads_alone

CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(channels)
        self.known, self.left = -1, 0

    def forward(self, x):
        bn = self.bn
        mean, n = x.mean(0), x.shape[0]
        centered = x - mean
        var = centered.square().mean(0)
        if CONDITION:
            bn.running_mean.lerp_(mean, bn.momentum)
            bn.running_var.lerp_(var * (n / (n - 1)), bn.momentum)
            bn.num_batches_tracked.add_(1)
        self.known = bn.running_mean._version
        return centered * torch.rsqrt(var + bn.eps) * bn.weight + bn.bias

    def early(self, calls):
        self.left += 1
        return self.left <= calls

    def soon_after_a_load(self, calls):
        self.left = calls if self.bn.running_mean._version != self.known else self.left - 1
        return self.left > 0
"""


@pytest.fixture(autouse=True)
def _closely(judge):
    """Compare the buffers after a round of many calls, on a busy machine, too."""
    rules = replace(QUICK, round_us=4 * QUICK.round_us, enough_calls=None)
    with workloads_alone(judge, replace(judge.protocol, judge=rules)):
        yield


def judged(judge, condition: str):
    task = suite.problem("batch_norm_in_training")
    source = CANDIDATE.replace("CONDITION", condition)
    made = Candidate(source=source, language=detect(source), proposer="test")
    return judge.judge(task, made, eager_only(judge, task))


@pytest.mark.parametrize("condition", ["self.early(40)", "self.soon_after_a_load(5)"])
def test_statistics_that_only_some_calls_move_are_wrong_where_it_is_timed(judge, condition):
    found = judged(judge, condition)
    assert found.verdict is Verdict.INCORRECT_VALUES, found.reason
    assert (found.stage, found.evidence["check"]) == ("timing", "buffer"), found.reason


def test_statistics_that_every_call_moves_are_right_in_rounds_that_all_begin_with_a_load(judge, monkeypatch):
    """A tensor's version tells of a load: one before the round alone whose buffers are compared would give it away."""
    loaded: set[int] = set()
    rounds: list[bool] = []
    load, run_round = Subject.load_state, CpuBackend.run_round

    def load_state(subject, values):
        loaded.add(id(subject.child))
        return load(subject, values)

    def run(backend, child, request):
        if request.read or request.look:  # nobody looks at the null child's
            rounds.append(id(child) in loaded)
        loaded.discard(id(child))
        return run_round(backend, child, request)

    monkeypatch.setattr(Subject, "load_state", load_state)
    monkeypatch.setattr(CpuBackend, "run_round", run)
    found = judged(judge, "True")
    assert found.verdict is Verdict.PASSED, found.reason
    assert rounds
    assert all(rounds)


@pytest.mark.parametrize(("rows", "right"), [(65536, True), (64, False)])
def test_a_buffer_that_is_a_long_sum_has_its_rounding(rows: int, right: bool) -> None:
    """Means of as many numbers of both signs are small beside the partial sums, each of which rounds."""
    mean = torch.randn(16, generator=torch.Generator().manual_seed(0))
    off = mean * (1 + 8e-6)
    claim = TensorSpec.of(off).to_json()
    state = SimpleNamespace(buffers=[SimpleNamespace(name="seen", claim=claim)])
    subject: Any = SimpleNamespace(
        describe_state=lambda: state, backend=SimpleNamespace(fetch=lambda child, claims: [off]), child=None
    )
    raised = contextlib.nullcontext() if right else pytest.raises(Rejection, match="the buffer seen is wrong")
    with raised:
        compare(subject, {"seen": mean}, {"seen": "seen"}, [[torch.empty(rows, 16)]], Stage.CORRECTNESS, "p")
