"""The chain between timed calls: judge and child compute the same, and a child that departs from it is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.child.gpu import chain as cuda_chain
from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.evaluator.rooms import BRIEF, candidate, eager_only, problem


def link_for(tensor: torch.Tensor, outputs: int, seed: int = 1) -> chain.Link:
    return chain.make_link([tensor], [0], 0, outputs, torch.Generator().manual_seed(seed))


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
    chain._step_by_torch(chain.element_bits(output), [chain.element_bits(other)], link)
    assert torch.equal(before, other)


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int64, torch.uint8]
SIZES = st.one_of(st.integers(2, 40), st.integers(2, 9000))
TENSORS = st.lists(st.tuples(SIZES, st.sampled_from(DTYPES)), min_size=1, max_size=chain.MOST_INPUTS)


def several(sizes: list[tuple[int, torch.dtype]]) -> list[torch.Tensor]:
    """Make values that all differ, as far as the dtype has so many."""
    return [(torch.randperm(size) % 120).to(dtype) for size, dtype in sizes]


def same(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(chain.element_bits(a), chain.element_bits(b)) for a, b in zip(some, others, strict=True))


@given(sizes=TENSORS, others=st.integers(0, 2), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**31))
def test_judge_and_child_change_several_inputs_alike(
    sizes: list[tuple[int, torch.dtype]], others: int, dtype: torch.dtype, seed: int
) -> None:
    """The judge, a child that reads the chain from JSON, torch's fallback and many steps at once derive the same
    inputs."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    calls = [[*several(sizes), *(torch.randn(9) for _ in range(others))] for _ in range(3)]
    outputs = [[torch.randn(5), torch.randn(300).to(dtype)] for _ in calls]
    order = torch.randperm(len(sizes)).tolist()
    link = chain.make_link(calls[0], order, 1, 300, generator)
    derived = chain.derive(calls, outputs, link)
    raw = link.coefficients.clone().view(-1).view(torch.uint8)
    said = json.loads(json.dumps(link.to_json(TensorSpec.of(link.coefficients))))
    told = chain.Link.from_json(said, raw)
    assert told.captured == link.captured
    numbers, captured = told.numbers(), [[one.clone() for one in call] for call in calls]
    before = [[one.clone() for one in call] for call in calls]
    together = [[one.clone() for one in call] for call in calls]
    chain.step_together(outputs[:-1], together[1:], told)
    for index in range(1, len(calls)):
        chain.step_on_cpu(outputs[index - 1][1], chain.target_arrays(calls[index], told), told, numbers)
        words = [chain.element_bits(captured[index][i]) for i in told.inputs]
        chain._step_by_torch(chain.element_bits(outputs[index - 1][1]), words, told)
        assert same(derived[index], calls[index])
        assert same(derived[index], captured[index])
        assert same(derived[index], together[index])
        assert same(derived[index][len(sizes) :], before[index][len(sizes) :])
    assert same(calls[0], before[0])


@given(sizes=TENSORS, replays=st.integers(2, 40), seed=st.integers(0, 2**31))
def test_a_replay_step_equals_the_judges_derivation(
    sizes: list[tuple[int, torch.dtype]], replays: int, seed: int
) -> None:
    """In any replay the inputs are those granted, except for the chosen elements, with values of the same block.

    Doing earlier replays first changes nothing.
    """
    torch.manual_seed(seed)
    granted = several(sizes)
    order = torch.randperm(len(sizes)).tolist()
    link = chain.make_link(granted, order, 0, 5, torch.Generator().manual_seed(seed))
    inputs, turns = [one.clone() for one in granted], torch.zeros_like(link.coefficients[0])
    for replay in range(replays):
        chain.replay_step(turns, inputs, link)
        assert replay or same(inputs, granted)
    assert turns.tolist() == [replays] * len(turns)
    (derived,) = chain.derive([granted], [[torch.randn(5)]], link, replays)
    assert same(inputs, derived)
    for index, span in zip(link.inputs, link.spans, strict=True):
        now, before = chain.element_bits(inputs[index]), chain.element_bits(granted[index])
        where, _, _, *values = link.coefficients[:, span]
        assert set((now != before).nonzero().flatten().tolist()) <= set(where.tolist())
        assert all(int(now[at]) in column for at, column in zip(where, torch.stack(values).t().tolist(), strict=True))


def test_no_replay_has_the_inputs_of_another() -> None:
    granted = torch.randn(64, 4096)
    link = link_for(granted, 5)
    seen = [chain.derive([[granted]], [], link, replays)[0][0] for replays in (*range(1, 9), 30, 31, 58, 59)]
    apart = [int((a != b).sum()) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(apart) > 0.7 * link.coefficients.shape[1]


def test_each_input_has_columns_of_its_own() -> None:
    """Each input has as many columns as blocks, and the same ones as without the other inputs."""
    tensors = [torch.randn(3000), torch.randn(2), torch.randn(5000, dtype=torch.float64), torch.randn(9).half()]
    link = chain.make_link(tensors, [0, 1, 2, 3], 0, 77, torch.Generator().manual_seed(5))
    assert link.counts == (3, 1, 10, 1)
    assert link.owners == (0, 0, 0, 1, *[2] * 10, 3)
    generator = torch.Generator().manual_seed(5)
    for index, (tensor, span) in enumerate(zip(tensors, link.spans, strict=True)):
        alone = chain.make_link(tensors, [index], 0, 77, generator)
        assert alone.owners == (0,) * link.counts[index]
        assert torch.equal(alone.coefficients, link.coefficients[:, span])
        where, read, _, *found = alone.coefficients
        bits = chain.element_bits(tensor).tolist()
        assert int(where.max()) < tensor.numel()
        assert int(read.max()) < 77
        assert all(value in bits for row in found for value in row.tolist())


def test_coefficients_of_one_input_are_laid_out_as_native_code_reads_them() -> None:
    tensor = torch.arange(3000, dtype=torch.int32)
    rows = link_for(tensor, 77, seed=3).coefficients.tolist()
    assert [row[0] for row in rows] == [379, 43, 549482583758, 664, 789, 681, 660, 538, 959, 872, 507]
    assert len(rows) == 11


@pytest.mark.parametrize(
    "changed",
    [
        {"inputs": []}, {"inputs": [0, 0]}, {"inputs": [0, -1]}, {"inputs": [0]}, {"inputs": [0, 1, 2]},
        {"counts": [3, 0]}, {"counts": [1, 1]}, {"counts": [4, -1]}, {"inputs": list(range(9)), "counts": [1] * 9},
    ],
)  # fmt: skip
def test_an_invalid_link_is_refused(changed: dict[str, list[int]]) -> None:
    link = chain.make_link([torch.randn(2000), torch.randn(9)], [0, 1], 0, 5, torch.Generator())
    raw = link.coefficients.view(-1).view(torch.uint8)
    said = link.to_json(TensorSpec.of(link.coefficients))
    assert chain.Link.from_json(said, raw).counts == (2, 1)
    with pytest.raises(LayoutError):
        chain.Link.from_json({**said, **changed}, raw)


def test_targets_hold_the_end_of_each_input() -> None:
    tensors = [torch.randn(2000), torch.randn(9).half(), torch.randn(9, dtype=torch.complex128)]
    link = chain.make_link(tensors, [0, 1, 2], 0, 5, torch.Generator())
    told = cuda_chain.Targets.of(tensors, link)
    assert list(told.end) == [2, 3, 4, 4, 4, 4, 4, 4]
    assert list(told.bytes) == [4, 2, 8, 0, 0, 0, 0, 0]
    assert list(told.base)[:4] == [*(one.data_ptr() for one in tensors), None]


def test_element_bits_cover_every_layout_once() -> None:
    transposed = torch.randn(6, 8).t()
    assert chain.dense(transposed)
    assert sorted(chain.element_bits(transposed).tolist()) == sorted(transposed.flatten().view(torch.int32).tolist())
    gaps = torch.randn(6, 8)[:, ::2]
    assert not chain.dense(gaps)
    assert chain.element_bits(gaps).tolist() == gaps.flatten().view(torch.int32).tolist()


SKIPS_THE_STEP = """import evaluator.child.protocol.chain as harness
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


@pytest.mark.usefixtures("workloads_alone")
@pytest.mark.parametrize(
    "body",
    [SKIPS_THE_STEP, ONE_CALL_LATE, RETURNS_ITS_INPUT_WHEN_TIMED],
    ids=["skips the step", "one call late", "in place when timed"],
)
def test_calls_that_break_the_chain_are_refused(judge: Judge, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    # A busy machine makes calls look long, and short rounds would have one call: nothing to chain.
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=replace(BRIEF, round_us=50_000.0)))
    task = problem()
    found = judge.judge(task, candidate(body), eager_only(judge, task))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.reason, found.evidence)
    assert found.evidence["check"] in ("timed_values", "input_changed"), found.evidence
