"""Batch normalisation in training: running statistics and the count of batches are changed as the reference does."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, graphs, problem
from tests.synthesis.test_triton import case, compiled
from tests.synthesis.together import Together

pytestmark = pytest.mark.compiles

IMAGES, SIZES = "torch.randn(b, c, h, h)", "b=64, c=64, h=64"
NORM = "self.n = nn.BatchNorm2d(c)"
BUFFERS = (
    "self.register_buffer('m', torch.zeros(3))\nself.register_buffer('v', torch.ones(3))\n"
    "self.register_buffer('k', torch.tensor(0))"
)
CALL = "F.batch_norm(a0, self.m, self.v, training=True)"


def firsts(source: str, kind: DeviceKind, **sizes: int) -> list[Draft]:
    found = graphs(source, [{"name": "a", **sizes}], train=True)
    return list(itertools.islice(sequence(found, kind, 0), 1))


def test_a_module_in_training_is_two_kernels(tmp_path: Path) -> None:
    """All sizes are equal, and statistics and counter are written by the kernel that normalises."""
    pytest.importorskip("triton")
    source = problem("return self.n(a0)", IMAGES, init=NORM, sizes=SIZES, init_args="c")
    sizes: dict[str, Any] = {"b": 64, "c": 64, "h": 64}
    [draft] = firsts(source, DeviceKind.CUDA, **sizes)
    assert draft.strategy == "building blocks"
    assert not draft.left
    assert "running_var, self.n.num_batches_tracked,)" in draft.source
    launches = compiled({"a": case(tmp_path, "norm", source, [draft], [sizes])}, tmp_path)["a"]
    assert [one["kernel"] for one in launches] == ["summarise_slices", "normalise_batch_norm"]
    assert [one["spilled"] for one in launches] == [0, 0]
    assert all(one["accesses"]["ld.v4"] for one in launches)


def test_what_follows_is_in_the_same_kernel() -> None:
    """Of two modules, each counts in its own kernel; a sum of both is a kernel of its own."""
    init = f"{NORM}\nself.o = nn.BatchNorm2d(c)"
    source = problem("return (self.n(a0).relu() + self.o(a0)) * a0", IMAGES, init=init, sizes=SIZES, init_args="c")
    [draft] = firsts(source, DeviceKind.CUDA, b=64, c=32, h=64)
    forward = draft.source.partition("def forward")[2]
    assert [forward.count(call) for call in ("_batch(", "_tiled(", ".add_(", "num_batches_tracked")] == [2, 1, 0, 2]
    source = problem("return self.n(a0).relu() * a0", IMAGES, init=NORM, sizes=SIZES, init_args="c")
    [draft] = firsts(source, DeviceKind.CUDA, b=64, c=32, h=64)
    forward = draft.source.partition("def forward")[2]
    assert [forward.count(call) for call in ("_batch(", "_tiled(")] == [1, 0]


def test_a_count_that_no_kernel_takes_is_kept(together: Together) -> None:
    source = problem(f"self.k.add_(2)\nreturn {CALL}.exp() * 2", "torch.randn(b, 3, h)", init=BUFFERS, sizes="b=2, h=5")
    [draft] = firsts(source, DeviceKind.CPU, b=2, h=5)
    assert "self.k.add_(2)" in draft.source
    together.compile([draft.source])
    Pair(source, draft.source, {"b": 4, "h": 9}).check()


@pytest.mark.parametrize("rest", ["+ self.m[:, None]", f"+ {CALL}", "+ self.k.add_(1)"])
def test_statistics_that_are_used_elsewhere_are_refused(rest: str) -> None:
    source = problem(f"return {CALL}.exp() {rest}", "torch.randn(b, 3, h)", init=BUFFERS, sizes="b=2, h=5")
    assert not firsts(source, DeviceKind.CPU, b=2, h=5)
