"""Rounds on a CPU in a caged child: no page fault falls into a timed call, and a plain loop keeps no output."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evaluator.child import cpu_device, cpu_ops
from evaluator.child.cpu_ops import CpuRounds
from evaluator.child.protocol.layout import pack
from evaluator.child.session import Session
from evaluator.devices.cpu_memory import memory_file
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.stages.time_candidate import baseline_contender
from evaluator.stages.trial import secret_generator
from evaluator.timing.bench import Bench
from evaluator.timing.protocol import Rules

TREE = {"tuple": [{"tensor": 0}]}
PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(512, 1024)]
"""


class Doubling:
    """A model that counts its calls and the outputs of its own that live."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return tensor * 2


def armed(count: int) -> tuple[CpuRounds, dict[str, Any]]:
    """Return rounds of `count` calls, and the request that arms them."""
    session = Session()
    session.call = session.model = Doubling()
    session.device = cpu_device.CpuDevice()
    specs, size = pack([torch.ones(1 << 18)])
    rounds = CpuRounds(session)
    rounds.stage({"bytes": size * count}, [memory_file("inputs", size * count)])
    layouts = [spec.to_json() for spec in specs]
    return rounds, {"layouts": layouts, "pitch": size, "count": count, "tree": TREE, "link": None}


def test_a_heap_is_touched_once_for_the_outputs_of_a_round_and_some_more(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []
    monkeypatch.setattr(cpu_ops, "touch_heap", touched.append)
    rounds, request = armed(3)
    for _ in range(3):
        rounds.arm(request, [])
        rounds.run({}, [])
    assert touched == [(3 + 4) << 20 | 16 << 20]  # nothing is known before the first round; then it is enough
    rounds.arm({**request, "count": 2}, [])
    assert len(touched) == 1


def test_more_memory_than_there_is_is_left_alone() -> None:
    cpu_device.touch_heap(1 << 60)


def test_a_mapping_has_its_pages_where_the_kernel_cannot_populate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_device, "MADV_POPULATE_WRITE", 1 << 20)  # refused, as by an old kernel
    assert bool((cpu_device.map_shared(memory_file("inputs", 1 << 16), 1 << 16) == 0).all())


def test_a_plain_loop_makes_every_call_of_every_pass() -> None:
    rounds, request = armed(3)
    rounds.arm(request, [])
    assert rounds.run_plainly({"passes": 4}, []) == {}
    model = rounds._session.call
    assert model.calls == 12
    assert rounds._outputs == []


def test_counted_rounds_of_a_new_process_have_no_page_faults(judge: Judge) -> None:
    task = read_problem(PROBLEM, "softmax")
    (workload,) = task.workloads
    with judge.session.references.start(task) as reference:
        oracle = Oracle(task, reference, workload.sizes, secret_generator())
        bench = Bench(
            judge.session, workload, oracle, [baseline_contender(judge.session, task, workload, "eager", oracle)]
        )
        try:
            with judge.session.exclusive():
                bench.run(Rules(least_pairs=4, most_pairs=4, racing=False, rehearse=False))
                (loop,) = bench.plain_loops().values()
        finally:
            bench.close()
    (eager,) = bench.contenders
    pages_of_a_call = (512 * 1024 * 4) // 4096
    assert max(eager.page_faults) < pages_of_a_call / 8
    assert loop.call_us > 0
