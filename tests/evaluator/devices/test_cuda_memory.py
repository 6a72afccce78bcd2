"""Grouping of copies in snapshots: the same arithmetic on the CPU as on the GPU."""

from hypothesis import given
from hypothesis import strategies as st

from evaluator.devices.cuda_memory import copy_groups


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
