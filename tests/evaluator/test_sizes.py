"""Which sizes a Candidate is checked on, and which one module is called with one after the other."""

from __future__ import annotations

from evaluator.problem import read_problem
from evaluator.sizes import Sizes, in_turn, varied_sizes
from evaluator.types import Problem

SOURCE = """import torch
WORKLOADS = [
    {"name": "small", "rows": 16, "width": 256},
    {"name": "large", "rows": 64, "width": 512},
    {"name": "secret", "rows": 24, "width": 384, "held_out": True},
]
def reference(x):
    return x
def get_inputs(rows=16, width=256):
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
        "rows=63, width=511",
    ]  # fmt: skip
    assert any(one.sizes["rows"] * one.sizes["width"] % 2 for one in found)


def test_a_single_size_is_varied_once() -> None:
    problem = _problem(SOURCE.replace('"width": 256', '"width": 512').replace('"width": 384', '"width": 512'))
    found = list(varied_sizes(problem, problem.workloads))
    assert _labels(found) == ["rows=1", "rows=15", "rows=17", "rows=63, width=512"]


def test_every_dtype_meets_odd_sizes() -> None:
    """A kernel may have a way of its own for each, and for large sizes."""
    problem = _problem(SOURCE.replace('"width": 512}', '"width": 512, "dtype": "bfloat16"}'))
    found = [dict(one.sizes) for one in varied_sizes(problem, problem.workloads)]
    assert {"rows": 63, "width": 511, "dtype": "bfloat16"} in found


def test_a_general_domain_meets_more_than_the_largest() -> None:
    problem = _problem('DOMAIN = "general"\n' + SOURCE)
    assert {"width=512", "width=1024"} <= set(_labels(list(varied_sizes(problem, problem.workloads))))


def test_one_module_meets_larger_sizes_smaller_ones_and_those_that_share_all_but_one() -> None:
    problem = _problem()
    small = Sizes("small", {"rows": 16, "width": 256})
    found = in_turn(problem, problem.workloads, small, (), lambda one: True)
    assert _labels(found) == [
        "width=1", "large", "small", "rows=17", "width=257", "rows=256, width=16", "width=1",
    ]  # fmt: skip
    of_one_width = in_turn(problem, problem.workloads, small, (), lambda one: one.sizes["width"] == 256)
    assert _labels(of_one_width) == ["rows=1", "rows=17", "small", "rows=17", "rows=1"]
    assert in_turn(problem, problem.workloads, small, (), lambda one: one.label == "small") == []


def test_what_is_held_out_comes_before_and_after_the_largest_that_is_shown() -> None:
    problem = _problem()
    secret = Sizes("secret", {"rows": 24, "width": 384}, hidden=True)
    assert _labels(in_turn(problem, problem.workloads, secret, {"large"}, lambda one: True)) == [
        "secret", "large", "secret",
    ]  # fmt: skip
