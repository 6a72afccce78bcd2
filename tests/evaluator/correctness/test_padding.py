"""Masks that are drawn by coins are padded and rotated, those that have anything in common are left as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from evaluator.correctness import padding
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge


def draw() -> torch.Generator:
    return torch.Generator().manual_seed(7)


Change = Callable[[Oracle, Any, Sequence[tuple[torch.Tensor, ...]]], tuple[torch.Tensor, ...] | None]
COINS = "torch.rand(16, 32) < 0.7"


def padded(judge: Judge, forward: str, mask: str, change: Change = padding.with_padding) -> torch.Tensor | None:
    source = (
        f"import torch\ndef reference(x, mask):\n    return {forward}\n"
        f"def get_inputs():\n    return [torch.randn(16, 32), {mask}]\n"
    )
    problem = read_problem(source, "padding")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, draw())
        made = [oracle.inputs() for _ in range(2)]
        found = change(oracle, made[0].tree, [one.tensors for one in made])
        assert reference.child.alive
    if found is None:
        return None
    assert found[0] is made[0].tensors[0]
    return found[1]


@pytest.mark.parametrize(
    "forward",
    ["x * mask", "x.masked_fill(~mask, -torch.inf).softmax(-1)", "x.masked_fill(mask, -torch.inf).softmax(-1)"],
)
def test_lines_begin_or_end_with_many_alike(judge: Judge, forward: str) -> None:
    mask = padded(judge, forward, COINS)
    assert mask is not None
    alike = [max(int((line.diff() != 0).nonzero()[0]), int((line.flip(0).diff() != 0).nonzero()[0])) for line in mask]
    assert max(alike) >= 30
    assert sum(length > 7 for length in alike) >= 4
    assert not bool(mask.all(-1).any())
    assert bool(mask.any(-1).all())


def test_rotated_lines_have_as_many_at_other_places(judge: Judge) -> None:
    usual = padded(judge, "x * mask", COINS, lambda oracle, tree, draws: draws[0])
    mask = padded(judge, "x * mask", COINS, padding.with_rotated_rows)
    assert usual is not None
    assert mask is not None
    assert not torch.equal(mask, usual)
    assert torch.equal(mask.sum(-1), usual.sum(-1))
    assert padded(judge, "x * mask", "torch.ones(16, 32) > 0", padding.with_rotated_rows) is None


@pytest.mark.parametrize(
    "mask",
    [
        "torch.arange(32) < torch.randint(1, 32, (16, 1))",  # padded already
        "torch.zeros(16, 32, dtype=torch.bool).scatter(1, torch.rand(16, 32).topk(4).indices, True)",  # four a line
        "torch.zeros(16, 32, dtype=torch.bool).scatter(0, torch.randint(16, (1, 32)), True)",  # one a column
        "(torch.rand(16, 8) < 0.7).repeat_interleave(4, -1)",  # blocks
        "torch.ones(16, 32) > 0",  # always the same
        "(torch.rand(16, 32) < 0.7).float()",
    ],
)
def test_what_masks_have_in_common_is_kept(judge: Judge, mask: str) -> None:
    assert padded(judge, "x * mask", mask) is None


@pytest.mark.parametrize("kind", [".tril()", ".triu()", " & torch.eye(32).bool()"])
def test_triangles_stay_such(judge: Judge, kind: str) -> None:
    assert padded(judge, "(x @ x.T).sum() * mask", f"(torch.rand(32, 32) < 0.7){kind}") is None


def test_what_the_reference_does_not_take_is_left_out(judge: Judge) -> None:
    assert padded(judge, "x[mask]", COINS) is None  # of another shape
    assert padded(judge, "x / ((mask.sum(-1, keepdim=True) > 8) * 1.0) * 0", COINS) is None  # NaN where there was none
