"""The chain between timed calls: what judge and child compute alike, and what becomes of a child that does not."""

from __future__ import annotations

import pytest
import torch

from evaluator.child import chain
from evaluator.judge import Judge
from evaluator.types import Verdict
from tests.evaluator.rooms import candidate, eager_only, problem


def link_for(tensor: torch.Tensor, outputs: int, seed: int = 1) -> chain.Link:
    return chain.make_link([tensor], 0, 0, outputs, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.complex64])
def test_a_step_picks_one_other_element_in_every_block(dtype: torch.dtype) -> None:
    before = torch.arange(5000).to(dtype)
    output = torch.randn(77).to(torch.bfloat16)
    link, after = link_for(before, 77), before.clone()
    chain.step([output], [after], link)
    block = 4096 // before.element_size()
    assert link.coefficients.shape[1] == -(-5000 // block)
    changed = (after != before).nonzero().flatten().tolist()
    assert set(changed) <= set(link.coefficients[0].tolist())
    for position in changed:
        start = position // block * block
        assert after[position] in before[start : start + block]
    again = after.clone()
    chain.step([output], [again], link)
    assert torch.equal(again, after)


def test_other_outputs_make_other_inputs() -> None:
    before, output = torch.randn(64, 4096), torch.randn(1000)
    link = link_for(before, 1000)
    made = []
    for change in (0.0, 1e-6):
        after = before.clone()
        chain.step([output * (1 + change)], [after], link)
        made.append(after)
    assert int((made[0] != made[1]).sum()) > 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.int64, torch.bool])
def test_numpy_and_torch_agree(dtype: torch.dtype) -> None:
    before, output = torch.randn(9000), torch.randn(300).to(dtype)
    link, other = link_for(before, 300), before.clone()
    chain.step([output], [before], link)
    chain._step_by_torch(chain.words(output), chain.words(other), link)
    assert torch.equal(before, other)


def test_words_cover_every_layout_once() -> None:
    transposed = torch.randn(6, 8).t()
    assert chain.dense(transposed)
    assert sorted(chain.words(transposed).tolist()) == sorted(transposed.flatten().view(torch.int32).tolist())
    gaps = torch.randn(6, 8)[:, ::2]
    assert not chain.dense(gaps)
    assert chain.words(gaps).tolist() == gaps.flatten().view(torch.int32).tolist()


SKIPS_THE_STEP = """import evaluator.child.chain as harness
vars(harness)["step_on_cpu"] = lambda *args: None
class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
"""
# Complete when a round ends, but not when a call does: what an unjoined stream or a queue of calls gives.
ONE_CALL_LATE = """import queue
work = queue.Queue()
def later():
    while True:
        y, x, w = work.get()
        time.sleep(0.0005)
        y.copy_(right(x, w))
        work.task_done()
threading.Thread(target=later, daemon=True).start()
class ModelNew(Base):
    def forward(self, x):
        y = torch.zeros_like(x)
        work.put((y, x.clone(), self.weight.detach()))
        frame = sys._getframe()
        while frame is not None and "link" not in frame.f_locals:
            frame = frame.f_back
        if frame is None:
            work.join()
        return y
"""
RETURNS_ITS_INPUT_WHEN_TIMED = """class ModelNew(Base):
    def forward(self, x):
        frame = sys._getframe()
        while frame is not None and "link" not in frame.f_locals:
            frame = frame.f_back
        return x.copy_(right(x, self.weight)) if frame else right(x, self.weight)
"""


@pytest.mark.parametrize(
    "body",
    [SKIPS_THE_STEP, ONE_CALL_LATE, RETURNS_ITS_INPUT_WHEN_TIMED],
    ids=["skips the step", "one call late", "in place when timed"],
)
def test_calls_that_are_not_what_the_chain_makes_them_are_refused(judge: Judge, body: str) -> None:
    task = problem()
    found = judge.judge(task, candidate(body), eager_only(judge, task))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.reason, found.evidence)
    assert found.evidence["check"] in ("timed_values", "input_changed"), found.evidence
