"""Timed inputs that are mixed from draws of a recipe."""

from __future__ import annotations

import pytest
import torch

from evaluator.inputs.mixtures import mix, random_masks

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(dtype, (first, -1.0)) for dtype in DTYPES for first in (1.0, float("nan"))]
    + [(dtype, (float("inf"), -0.0)) for dtype in DTYPES if dtype is not torch.float8_e4m3fn],
)
def test_each_element_comes_from_one_of_two_tensors(dtype: torch.dtype, values: tuple[float, float]) -> None:
    generator = torch.Generator().manual_seed(0)
    made = [(torch.full((7, 31), value).to(dtype),) for value in values]
    masks = random_masks(made[0], [True], generator)
    before = [None if mask is None else mask.clone() for mask in masks]
    (mixed,) = mix(made, masks, [False], [True], generator)
    assert (mixed.shape, mixed.dtype) == ((7, 31), dtype)
    shares = []
    for (tensor,) in made:
        same = mixed.double().isnan() if tensor.double().isnan().any() else mixed.double() == tensor.double()
        shares.append(float(same.double().mean()))
    assert sum(shares) == 1.0
    assert min(shares) > 0.3
    assert all(a is None or torch.equal(a, b) for a, b in zip(masks, before, strict=True))
