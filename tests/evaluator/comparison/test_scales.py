"""Numbers that a narrower type does not hold."""

from __future__ import annotations

import pytest
import torch

from evaluator.comparison import scales

LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize(
    ("values", "marked"),
    [
        ([1.0, -LARGEST], None),
        ([LARGEST * (1 + 1e-9)], None),  # rounded to the largest number
        ([1.0, LARGEST * 1.001], [False, True]),
        ([float("nan"), -1e39, 1.0], [False, True, False]),
        ([float("inf"), 1.0], None),
        ([], None),
    ],
)
def test_overflowing_marks_finite_numbers_alone(values: list[float], marked: list[bool] | None) -> None:
    found = scales.overflowing(torch.tensor(values, dtype=torch.float64), torch.float32)
    assert (None if found is None else found.tolist()) == marked
