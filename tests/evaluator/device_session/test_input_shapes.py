"""The layouts of a Problem's inputs are asked for once, however many Candidates are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from evaluator.device_session.pools import PoolCache
from evaluator.devices import cuda_children
from evaluator.errors import ChildCrashed, ChildError
from evaluator.problem import read_problem
from evaluator.types import DeviceKind, Problem

SOURCE = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x + {}\n"
SOURCE += "def get_inputs(n=4):\n    return [torch.randn(n)]\n"


class Gpu:
    """A stand-in for a GPU, its pool and the pool's children."""

    def __init__(self, kind: DeviceKind = DeviceKind.CUDA) -> None:
        self.kind = kind
        self.asked: list[Any] = []
        self.preload: Sequence[str] = ()

    def build_environment(self) -> Mapping[str, str]:
        return {}

    def pool(self, environment: Mapping[str, str], *, compiler: bool, preload: Sequence[str]) -> Gpu:
        self.preload = preload
        return self

    @contextmanager
    def start(self, *, name: str, files: Mapping[str, bytes]) -> Iterator[Gpu]:
        yield self

    def request(self, op: str, **fields: Any) -> dict[str, Any]:
        if op == "shapes":
            n = fields["sizes"]["n"]
            self.asked.append(n)
            if n == "crash":
                raise ChildCrashed(exit_code=1, signal=None, over="", output="")
            if n < 0:
                raise ChildError("RuntimeError", "no such size", "", output="")
        return {"inputs": fields.get("sizes")}


def problem(number: int) -> Problem:
    return read_problem(SOURCE.format(number).encode(), "adds")


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


@pytest.fixture
def pools(gpu: Gpu) -> PoolCache:
    return PoolCache(gpu)  # type: ignore[arg-type]


def test_answers_and_refusals_are_kept(gpu: Gpu, pools: PoolCache) -> None:
    for _ in range(2):
        found = pools.input_shapes(problem(1), [{"n": 1}, {"n": -1}, {"n": 2}])
        assert [one["inputs"]["n"] for one in found] == [1, 2]
    assert gpu.asked == [1, -1, 2]
    assert len(pools.input_shapes(problem(1), [{"n": 2}, {"n": 3}])) == 2
    assert len(pools.input_shapes(problem(2), [{"n": 2}])) == 1
    assert gpu.asked == [1, -1, 2, 3, 2]


def test_sizes_after_a_crash_are_asked_for_again(gpu: Gpu, pools: PoolCache) -> None:
    for _ in range(2):
        assert len(pools.input_shapes(problem(1), [{"n": 1}, {"n": "crash"}, {"n": 2}])) == 1
    assert gpu.asked == [1, "crash", "crash"]


def test_few_problems_are_kept(gpu: Gpu, pools: PoolCache) -> None:
    for number in (*range(17), 16, 0):
        pools.input_shapes(problem(number), [{"n": number}])
    assert gpu.asked == [*range(17), 0]


@pytest.mark.parametrize(("kind", "loaded"), [(DeviceKind.CUDA, cuda_children.OF_BUILDS), (DeviceKind.CPU, ())])
def test_what_meta_tensors_need_is_loaded_before_children_start(kind: DeviceKind, loaded: tuple[str, ...]) -> None:
    gpu = Gpu(kind)
    PoolCache(gpu).for_build(None)  # type: ignore[arg-type]
    assert gpu.preload == loaded
