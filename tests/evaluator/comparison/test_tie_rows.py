"""Rows that follow other choices where many scores tie."""

from __future__ import annotations

import math

import torch

from evaluator.comparison import tie_rows
from evaluator.comparison.tie_rows import nearest_rows


def _row(*picked: int, size: int = 6, value: float = 0.5) -> torch.Tensor:
    return torch.zeros(1, size, dtype=torch.float64).index_fill_(1, torch.tensor(picked), value)


def test_a_whole_row_is_compared_with_the_nearest_alternative() -> None:
    right, ways = _row(0, 1), [_row(4, 5), _row(2, 3)]
    assert torch.equal(nearest_rows(_row(4, 5), right, ways), _row(4, 5))
    assert torch.equal(nearest_rows(_row(0, 1), right, ways), right)
    none = torch.zeros(1, 6, dtype=torch.float64)
    assert not torch.equal(nearest_rows(none, right, ways), none)


def test_the_same_values_may_be_in_places_where_some_alternative_has_them() -> None:
    right, ways = _row(0, 1), [_row(4, 5)]
    assert torch.equal(nearest_rows(_row(0, 5), right, ways), _row(0, 5))
    assert not torch.equal(nearest_rows(_row(0, 3), right, ways), _row(0, 3)), "nobody picks the fourth"
    assert not torch.equal(nearest_rows(_row(0, 4, 5), right, ways), _row(0, 4, 5)), "three of them"


def test_nan_is_like_nan() -> None:
    right, ways = _row(0, 1, value=math.nan), [_row(4, 5, value=math.nan)]
    found = nearest_rows(_row(4, 5, value=math.nan), right, ways)
    assert found.isnan().tolist() == [[False] * 4 + [True] * 2]
    lost = nearest_rows(torch.zeros(1, 6, dtype=torch.float64), right, ways)
    assert bool(lost.isnan().any())


def test_only_nearer_rows_are_replaced() -> None:
    right = torch.cat([_row(0, 1), _row(2, 3)])
    way = torch.cat([_row(4, 5), _row(4, 5)])
    actual = torch.cat([_row(4, 5), _row(2, 3)])
    assert torch.equal(nearest_rows(actual, right, [way]), actual)


def test_elements_are_undecided_where_alternatives_differ() -> None:
    ways = [torch.tensor([[1.0, 2e-20, 3.0]]), torch.tensor([[1.0, 5e-20, 3.0]])]
    assert tie_rows.where_ties_differ(torch.tensor([[9.0, 9.0, 9.0]]), ways).tolist() == [[False, True, False]]
    assert not tie_rows.where_ties_differ(torch.full((1, 3), math.nan), ways).any()


def test_integers_computed_from_tied_selections_lie_in_the_range_of_the_alternatives() -> None:
    ways = [torch.tensor([[0, 7, 5]]), torch.tensor([[3, 7, 4]])]
    assert tie_rows.where_ties_differ(torch.tensor([[2, 2, 9]]), ways).tolist() == [[True, False, False]]
