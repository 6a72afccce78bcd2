"""Layouts that put two elements in the same place."""

from __future__ import annotations

import random

import pytest
import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.comparison.layout_checks import _overlaps_itself


@pytest.mark.parametrize(
    ("view", "overlaps"),
    [
        (torch.empty(8, 400), False),
        (torch.empty(8, 400).t(), False),
        (torch.empty(8, 400)[::3, 1::2], False),
        (torch.empty(1, 400).expand(1, 400), False),
        (torch.empty(1, 400).expand(8, 400), True),
        (torch.empty(0, 400).unfold(1, 64, 1), False),
        (torch.empty(8, 400).unfold(1, 64, 1), True),
        (torch.empty(8, 400).unfold(1, 64, 63), True),
        (torch.empty(8, 400).unfold(1, 64, 64), False),
        (torch.empty(8, 64).unfold(1, 64, 1), False),
        (torch.empty(400).as_strided((2, 3), (3, 2)), False),  # between one another, and none twice
        (torch.empty(400).as_strided((3, 4), (3, 2)), True),
        (torch.empty(1 << 16, device="meta").as_strided((1 << 16, 1 << 12), (1, 1)), True),
        (torch.empty(1, device="meta").as_strided((2, 1 << 20, 3), (3, 64, 2)), False),
    ],
)
def test_a_view_overlaps_itself_where_two_elements_are_one(view: torch.Tensor, overlaps: bool) -> None:
    assert _overlaps_itself(TensorSpec.of(view)) is overlaps


def test_any_strides_are_told_as_counting_tells_them() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        shape = [chance.randint(1, 5) for _ in range(chance.randint(0, 4))]
        stride = [chance.randint(0, 40) for _ in shape]
        spec = TensorSpec(tuple(shape), tuple(stride), "float32")
        places = torch.arange(1000).as_strided(shape, stride)
        assert _overlaps_itself(spec) is (places.unique().numel() < places.numel()), spec
