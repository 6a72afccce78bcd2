"""Tensors of other dimensions from a recipe's own."""

from __future__ import annotations

import pytest
import torch

from evaluator.child.reference import resizing

SIZES = {"rows": 3, "dimension 4": 6, "dimension and argument 8": 7, "dimension 5": 5}


def test_what_changes() -> None:
    assert resizing.changes(SIZES) == {4: 6, 8: 7}
    assert resizing.changes(SIZES, arguments=True) == {8: 7}
    assert resizing.named_sizes(SIZES) == {"rows": 3}


def test_whole_numbers_among_arguments() -> None:
    tree = {"list": [8, True, "8", {"float": "0x8"}, {"tensor": 8}, {"tuple": [8, 4]}]}
    found = resizing.with_arguments(tree, {8: 7})
    assert found == {"list": [7, True, "8", {"float": "0x8"}, {"tensor": 8}, {"tuple": [7, 4]}]}


def test_values_stay_and_others_follow() -> None:
    tensor = torch.randn(4, 3)
    larger = resizing.resized(tensor, {4: 6})
    assert larger.shape == (6, 3)
    assert torch.equal(larger[:4], tensor)
    assert {tuple(row) for row in larger[4:].tolist()} <= {tuple(row) for row in tensor.tolist()}
    assert torch.equal(resizing.resized(tensor, {4: 2}), tensor[:2])
    assert resizing.resized(tensor, {7: 2}) is tensor


def test_integers_stay_sorted() -> None:
    assert resizing.resized(torch.tensor([0, 2, 5]), {3: 5}).tolist() == [0, 2, 5, 5, 5]


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.uint16, torch.int64, torch.bool, torch.complex64],
)
def test_every_dtype(dtype: torch.dtype) -> None:
    found = resizing.resized(torch.ones(4, 3).to(dtype), {4: 6, 3: 2})
    assert (found.dtype, found.shape, found.is_contiguous()) == (dtype, (6, 2), True)


def test_layouts_stay() -> None:
    assert resizing.resized(torch.randn(3, 4).t(), {4: 6}).stride() == (1, 6)
    assert resizing.resized(torch.randn(1, 4).expand(5, 4), {5: 7, 4: 3}).stride() == (0, 1)
