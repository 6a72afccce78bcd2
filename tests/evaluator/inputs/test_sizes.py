"""The sizes that a Candidate is checked on, and those that one module is called with in turn."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from evaluator.inputs.sizes import Sizes, sizes_for_one_module, sizes_to_check, varied_sizes
from evaluator.problem import read_problem
from evaluator.types import Problem

SOURCE = """import torch
WORKLOADS = [
    {"name": "small", "rows": 16, "width": 256},
    {"name": "large", "rows": 64, "width": 512},
    {"name": "secret", "rows": 24, "width": 384, "held_out": True},
]
def reference(x):
    return x
def get_inputs(rows=16, width=256, **others):
    return [torch.randn(rows, width)]
"""


def _problem(source: str = SOURCE) -> Problem:
    return read_problem(source, "sizes")


def _labels(found: list[Sizes]) -> list[str]:
    return [one.label for one in found]


def test_sizes_are_varied_one_at_a_time_and_all_together() -> None:
    problem = _problem()
    found = list(varied_sizes(problem, problem.workloads))
    assert _labels(found) == [
        "rows=1", "rows=15", "rows=17", "width=1", "width=255", "width=257", "rows=15, width=255",
        "rows=63, width=511", "rows=18, width=258", "rows=20, width=260", "rows=24, width=264", "rows=16, width=272",
        "rows=16, width=288", "rows=16, width=320", "rows=16, width=384", "rows=16, width=16", "rows=3, width=5",
        "rows=3, width=512", "rows=64, width=3", "rows=1, width=512", "rows=64, width=1", "rows=24, width=40",
        "rows=25, width=323", "rows=32, width=400",
    ]  # fmt: skip
    assert any(one.sizes["rows"] * one.sizes["width"] % 2 for one in found)


def test_a_single_size_is_varied_once() -> None:
    problem = _problem(SOURCE.replace('"width": 256', '"width": 512').replace('"width": 384', '"width": 512'))
    found = list(varied_sizes(problem, problem.workloads))
    assert _labels(found) == [
        "rows=1", "rows=15", "rows=17", "rows=15, width=512", "rows=63, width=512", "rows=18, width=512",
        "rows=20, width=512", "rows=24, width=512", "rows=3, width=512", "rows=25, width=512", "rows=32, width=512",
    ]  # fmt: skip


@given(st.integers(256, 10_000), st.integers(256, 10_000))
def test_some_sizes_are_multiples_of_each_vector_and_of_none_longer(rows: int, width: int) -> None:
    source = SOURCE.replace('"rows": 16', f'"rows": {rows}').replace('"width": 256', f'"width": {width}')
    problem = _problem(source.replace('"rows": 64, "width": 512', '"rows": 20000, "width": 20000'))
    found = [one.sizes for one in (*problem.workloads, *varied_sizes(problem, problem.workloads))]
    for step in (1, 2, 4, 8, 16, 32, 64, 128):
        assert any(n["rows"] % (2 * step) == n["width"] % (2 * step) == step for n in found)
    assert all(n["rows"] >= 1 and n["width"] >= 1 for n in found)
    assert any(n["rows"] == n["width"] for n in found)


def test_sizes_that_are_one_number_in_all_workloads_stay() -> None:
    problem = _problem(SOURCE.replace("256", "512").replace("384", "512").replace("64", "16").replace("24", "16"))
    assert list(varied_sizes(problem, problem.workloads)) == []


def test_every_dtype_meets_odd_sizes() -> None:
    """A kernel may branch on each dtype, and on large sizes."""
    problem = _problem(SOURCE.replace('"width": 512}', '"width": 512, "dtype": "bfloat16"}'))
    found = [dict(one.sizes) for one in varied_sizes(problem, problem.workloads)]
    assert {"rows": 63, "width": 511, "dtype": "bfloat16"} in found


def test_a_general_domain_meets_more_than_the_largest() -> None:
    problem = _problem('DOMAIN = "general"\n' + SOURCE)
    assert {"width=512", "width=1024"} <= set(_labels(list(varied_sizes(problem, problem.workloads))))


def test_one_module_meets_larger_sizes_smaller_ones_and_those_that_share_all_but_one() -> None:
    problem = _problem()
    small = Sizes("small", {"rows": 16, "width": 256})
    found = sizes_for_one_module(problem, problem.workloads, small, (), lambda one: True)
    assert _labels(found) == [
        "rows=3, width=5", "large", "small", "rows=17", "width=257", "small",
        "rows=64, width=63", "rows=63, width=64", "rows=3, width=5",
    ]  # fmt: skip
    of_one_width = sizes_for_one_module(problem, problem.workloads, small, (), lambda one: one.sizes["width"] == 256)
    assert _labels(of_one_width) == ["rows=1", "rows=17", "small", "rows=17", "small", "rows=1"]
    assert sizes_for_one_module(problem, problem.workloads, small, (), lambda one: one.label == "small") == []


@given(st.lists(st.tuples(st.integers(1, 70), st.integers(1, 5000)), min_size=2, max_size=3, unique=True))
def test_one_module_meets_no_larger_sizes_than_other_checks(sizes: list[tuple[int, int]]) -> None:
    """A kernel may have a limit there, such as the 65,535 programs along a grid's second axis."""
    works = [f'    {{"name": "w{i}", "rows": {rows}, "width": {width}}},\n' for i, (rows, width) in enumerate(sizes)]
    problem = _problem(f"import torch\nWORKLOADS = [\n{''.join(works)}]\n" + SOURCE.partition("]\n")[2])
    told = list(sizes_to_check(problem, problem.workloads))
    for one in sizes_for_one_module(problem, problem.workloads, told[0], (), lambda one: True):
        for key in ("rows", "width"):
            assert 1 <= one.sizes[key] <= max(other.sizes[key] for other in told)


def test_two_sizes_are_swapped_where_both_are_in_range() -> None:
    problem = _problem(SOURCE.replace('"rows": 64', '"rows": 400'))
    found = _labels(sizes_for_one_module(problem, problem.workloads, Sizes("small", {}), (), lambda one: True))
    assert "rows=256, width=16" in found


def test_a_size_that_one_workload_leaves_out_is_swapped_all_the_same() -> None:
    source = SOURCE.replace('"rows": 16, "width": 256', '"rows": 16, "padding": 2').replace(
        '"width": 512', '"width": 256'
    )
    problem = _problem(source.replace("width=256, **others", "width=256, padding=0"))
    found = sizes_for_one_module(problem, problem.workloads, Sizes("small", {}), (), lambda one: True)
    assert {"rows=17", "padding=3", "width=257"} <= set(_labels(found))


def test_one_module_meets_equal_sizes_of_every_dtype() -> None:
    """The first dtype may decide that of a table cached by length."""
    source = SOURCE.replace('"width": 256}', '"width": 256, "dtype": "float32"}')
    problem = _problem(source.replace('"width": 512}', '"width": 512, "dtype": "bfloat16"}'))
    found = _labels(sizes_for_one_module(problem, problem.workloads, Sizes("small", {}), (), lambda one: True))
    assert found[1:5] == ["large", "rows=64, width=512, dtype=float32", "small", "rows=16, width=256, dtype=bfloat16"]


def test_held_out_sizes_come_before_and_after_the_largest_shown_ones() -> None:
    problem = _problem()
    secret = Sizes("secret", {"rows": 24, "width": 384}, hidden=True)
    assert _labels(sizes_for_one_module(problem, problem.workloads, secret, {"large"}, lambda one: True)) == [
        "secret", "large", "secret",
    ]  # fmt: skip


def test_sizes_of_many_axes_are_none_that_take_long() -> None:
    axes = '"rows": {}, "width": {}, "heads": {}, "batch": {}'
    small, large, secret = (axes.format(*sizes) for sizes in ((32, 48, 4, 2), (64, 64, 2, 1), (21, 20, 3, 3)))
    source = SOURCE.replace('"rows": 16, "width": 256', small).replace('"rows": 64, "width": 512', large)
    problem = _problem(source.replace('"rows": 24, "width": 384', secret))
    elements = [math.prod(one.sizes.values()) for one in varied_sizes(problem, problem.workloads)]
    assert max(elements) <= 8 * 32 * 48 * 4 * 2


def test_a_workload_may_leave_a_size_to_its_default() -> None:
    problem = _problem(SOURCE.replace('"rows": 64, "width": 512', '"rows": 4096'))
    assert all(one.sizes["rows"] >= 1 for one in varied_sizes(problem, problem.workloads))


def test_one_set_of_sizes_lies_above_the_largest() -> None:
    problem = _problem()
    above = "rows=65, width=513"
    assert _labels(list(sizes_to_check(problem, problem.workloads))).count(above) == 1
    assert above not in _labels(list(varied_sizes(problem, problem.workloads)))
