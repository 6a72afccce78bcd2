"""Indices of equal values are all right; indices of other values, or one twice, are not."""

import torch

from evaluator.limits import Limit, Target
from evaluator.ties import equal_by_value

NONE = Limit(0.0, 0.0)


def test_another_of_several_equal_maxima_is_as_good() -> None:
    x = torch.tensor([[1.0, 5.0, 5.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
    expected, other = torch.tensor([1, 0]), torch.tensor([2, 3])
    assert Target(expected, expected, [x]).judge(other, NONE) is None
    assert Target(expected, expected, [x]).judge(torch.tensor([0, 3]), NONE) is not None
    assert Target(expected, expected, [x]).judge(torch.tensor([7, 3]), NONE) is not None
    assert Target(expected, expected).judge(other, NONE) is not None


def test_no_element_is_picked_twice() -> None:
    x = torch.tensor([4.0, 9.0, 9.0, 9.0])
    assert equal_by_value([x], torch.tensor([1, 2]), torch.tensor([3, 1]))
    assert not equal_by_value([x], torch.tensor([1, 2]), torch.tensor([3, 3]))


def test_a_nan_equals_a_nan() -> None:
    x = torch.tensor([[float("nan"), 1.0, float("nan")]])
    assert equal_by_value([x], torch.tensor([0]), torch.tensor([2]))
    assert not equal_by_value([x], torch.tensor([0]), torch.tensor([1]))
