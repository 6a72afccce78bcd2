"""Grouping of copies in snapshots: the same arithmetic on the CPU as on the GPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.child.protocol.layout import LayoutError
from evaluator.devices.cuda_memory import copies, copy_groups, fill


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), max_size=30))
def test_groups_hold_every_range_once_and_copy_little_else(ranges):
    groups = copy_groups(ranges)
    assert sorted(index for group in groups for index in group) == list(range(len(ranges)))
    for group in groups:
        start, end = min(ranges[i][0] for i in group), max(sum(ranges[i]) for i in group)
        assert end - start <= 2 ** len(group) * sum(ranges[i][1] for i in group)


def test_neighbours_are_copied_together_and_strangers_apart():
    assert copy_groups([(0, 100), (128, 100), (10_000, 10)]) == [[0, 1], [2]]
    assert copy_groups([]) == []


LAYOUTS = {
    "rows": torch.arange(24.0).reshape(4, 6),
    "columns": torch.arange(24.0).reshape(4, 6).t(),
    "half": torch.arange(24).reshape(4, 6).to(torch.bfloat16),
    "one value everywhere": torch.tensor([3.0]).expand(5),
    "a number": torch.tensor(7, dtype=torch.int64),
    "nothing": torch.zeros(0, 3),
    "complex": torch.arange(4).to(torch.complex128),
    "eight bits": torch.arange(4.0).to(torch.float8_e4m3fn),
    "booleans": torch.tensor([True, False]),
}


def test_copies_are_alike_and_apart() -> None:
    found = copies([list(LAYOUTS.values())] * 2)
    for copied in found:
        for mine, original in zip(copied, LAYOUTS.values(), strict=True):
            assert (mine.stride(), mine.dtype) == (original.stride(), original.dtype)
            assert mine.tolist() == original.tolist()
            assert not mine.numel() or mine.data_ptr() != original.data_ptr()


def test_other_layouts_are_refused() -> None:
    for other in (torch.zeros(3), torch.zeros(2, dtype=torch.int32)):
        with pytest.raises(LayoutError, match="equal layouts"):
            fill([[torch.zeros(2)]], [[other]])
