"""Places of wrong elements in words: planted errors of kernels are described as such."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.comparison.patterns import describe

sizes = st.integers(5, 200)


def empty(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bool)


def test_nothing_and_everything() -> None:
    assert describe(empty(4, 4)) is None
    assert describe(~empty(4, 4)) == "all elements"
    assert describe(torch.tensor(True)) == "all elements"
    almost = ~empty(40, 40)
    almost[3, 7] = False
    assert describe(almost) == "nearly all elements (1599 of 1600)"


@given(sizes, sizes, st.data())
def test_rows_from_one_on(rows: int, columns: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(max(1, rows // 5), rows - 2))
    wrong = empty(rows, columns)
    wrong[first:] = True
    said = describe(wrong)
    assert said is not None
    assert said.startswith(f"rows >= {first}")
    assert describe(wrong.T) == said.replace("rows", "columns")


@given(sizes, sizes, st.data())
def test_one_column_alone(rows: int, columns: int, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, columns - 1))
    wrong = empty(rows, columns)
    wrong[:, column] = True
    assert describe(wrong) == ("the last column" if column == columns - 1 else f"column {column} alone")


@given(st.integers(1, 60), st.sampled_from([16, 32, 64, 128, 256, 512, 1024]), st.data())
def test_the_last_partial_block(blocks: int, block: int, data: st.DataObject) -> None:
    rest = data.draw(st.integers(2, block - 1))
    wrong = empty(3, blocks * block + rest)
    wrong[:, blocks * block :] = True
    said = describe(wrong)
    assert said is not None
    if rest < blocks * block * 9:
        assert said.startswith(f"columns >= {blocks * block} (the last, partial block of ")
        named = int(said.rpartition(" ")[2].rstrip(")"))
        assert wrong.shape[1] - wrong.shape[1] % named == blocks * block  # a larger block may end there, too


@given(st.integers(2, 40), st.integers(0, 39), st.integers(3, 9))
def test_every_so_many_elements(period: int, start: int, repeats: int) -> None:
    start %= period
    wrong = empty(start + period * repeats)
    wrong[start::period] = True
    said = describe(wrong)
    assert said is not None
    assert said.endswith(f" element, from {start} on")
    assert said.startswith("every other") if period == 2 else str(period) in said


def test_ordinals_read_well() -> None:
    for period, words in (
        (3, "every 3rd"),
        (17, "every 17th"),
        (22, "every 22nd"),
        (31, "every 31st"),
        (12, "every 12th"),
    ):
        wrong = empty(period * 5)
        wrong[::period] = True
        said = describe(wrong)
        assert said is not None
        assert said.startswith(words)


@given(st.integers(2, 20), st.integers(3, 8), st.data())
def test_a_part_of_every_block(half: int, repeats: int, data: st.DataObject) -> None:
    period, low = 2 * half + 1, data.draw(st.integers(0, half - 1))
    wrong = empty(4, period * repeats).reshape(4, repeats, period)
    wrong[:, :, low : low + half] = True
    assert describe(wrong.reshape(4, -1)) == (
        f"columns {low} to {low + half - 1} of every {period}"
        if half > 1
        else f"every {period}rd column, from {low} on"
    )


def test_a_rule_over_memory_that_the_axes_do_not_show() -> None:
    wrong = empty(30, 50)
    wrong.view(-1)[::17] = True
    assert describe(wrong) == "every 17th element, from 0 on (counted through)"
    wrong = empty(30, 50)
    wrong.view(-1)[1024:] = True
    assert describe(wrong) == "elements >= 1024 (the last, partial block of 1024) (counted through)"


def test_triangles() -> None:
    ones = torch.ones(2, 16, 16, dtype=torch.bool)
    assert describe(ones.triu(1)) == "columns right of the diagonal"
    assert describe(ones.tril(-1)) == "columns left of the diagonal"
    assert describe(torch.eye(16, dtype=torch.bool)) == "the diagonal"


def test_higher_axes_and_all_but() -> None:
    wrong = empty(6, 5, 7)
    wrong[2, :, -1] = True
    assert describe(wrong) == "index 2 of axis 0 alone, the last column"
    wrong = ~empty(9, 30)
    wrong[4:7] = False
    assert describe(wrong) == "all rows but 4 to 6"


@given(st.integers(0, 2**32 - 1))
def test_places_without_a_rule_are_called_scattered(seed: int) -> None:
    wrong = torch.rand(40, 40, generator=torch.Generator().manual_seed(seed)) < 0.3
    assert describe(wrong) == f"scattered: {int(wrong.sum())} of 1600 elements"


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (2, 3, 4, 5)])
@given(bits=st.integers(0, 2**64 - 1))
def test_every_set_of_places_has_a_description(shape: tuple[int, ...], bits: int) -> None:
    count = max(1, int(torch.tensor(shape).prod())) if shape else 1
    wrong = torch.tensor([bits >> (index % 64) & 1 for index in range(count)], dtype=torch.bool).reshape(shape)
    said = describe(wrong)
    assert (said is None) == (not bool(wrong.any()))
    assert said is None or len(said) < 200
