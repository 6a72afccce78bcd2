"""Element-wise outputs are in memory as PyTorch's are: as their inputs, even if these are transposed."""

from __future__ import annotations

import functools

import pytest
import torch

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, flat, graphs, problem
from tests.synthesis.together import Together

X = "torch.randn(b, c, h)"
SIZES = "b=3, c=37, h=20"
TWO = [{"name": "a", "b": 3, "c": 37, "h": 20}, {"name": "b", "b": 2, "c": 70, "h": 133}]
CHECKED = [*TWO, {"name": "one", "b": 1, "c": 1, "h": 9}, {"name": "none", "b": 0, "c": 4, "h": 5}]
FOLLOWING = [
    ("x.transpose(1, 2) + 1", X),
    ("F.gelu(x.permute(2, 0, 1)) * y.permute(2, 0, 1), x.permute(2, 0, 1).abs()", X),
    ("x.transpose(1, 2) * y", "torch.randn(c)"),
    ("x.permute(1, 2, 0) * y.exp() + 1", "torch.randn(h, 1)"),
    ("torch.where(y.transpose(0, 2), x.transpose(0, 2), 0.5)", "torch.rand(b, c, h) > 0.5"),
    ("(x.transpose(1, 2).relu() * y).clone()", "torch.randn(1)"),
]
OTHERS = [
    ("(x.transpose(1, 2) + y).contiguous()", "torch.randn(1)"),
    ("x.transpose(1, 2) * y", "torch.randn(b, h, c)"),
    ("x.transpose(1, 2) * y.transpose(0, 1)", "torch.randn(h, b, c)"),
    ("x.transpose(1, 2) + 1, x * y", X),
    ("(x.transpose(1, 2) * y).flatten(1)", "torch.randn(1)"),
]


def two(formula: str, second: str) -> str:
    return problem(f"x, y = a0, a1\nreturn {formula}", f"{X}, {second}", sizes=SIZES)


@functools.cache
def drafted(formula: str, second: str) -> Draft:
    return next(sequence(graphs(two(formula, second), TWO), DeviceKind.CPU, 0))


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    together.compile(drafted(*case).source for case in [*FOLLOWING, *OTHERS])


@pytest.mark.parametrize("case", FOLLOWING)
def test_nothing_is_transposed_where_all_inputs_are(case: tuple[str, str]) -> None:
    draft = drafted(*case)
    assert "transpose(" not in draft.source.partition('extern "C"')[2].partition("_library")[0]
    for workload in CHECKED:
        pair = Pair(two(*case), draft.source, workload)
        pair.check()
        if min(size for size in workload.values() if isinstance(size, int)) > 1:
            for got, expected in zip(flat(pair.candidate(*pair.inputs)), flat(pair.model(*pair.inputs)), strict=True):
                assert got.stride() == expected.stride()


@pytest.mark.parametrize("case", OTHERS)
def test_other_outputs_are_contiguous(case: tuple[str, str]) -> None:
    for workload in CHECKED:
        pair = Pair(two(*case), drafted(*case).source, workload)
        pair.check()
        assert all(got.is_contiguous() for got in flat(pair.candidate(*pair.inputs)))


def test_a_view_shares_no_memory_with_its_input() -> None:
    pair = Pair(two(*FOLLOWING[0]), drafted(*FOLLOWING[0]).source, TWO[0])
    before = pair.inputs[0].clone()
    pair.candidate(*pair.inputs).zero_()
    assert torch.equal(pair.inputs[0], before)
