"""Sizes that agree by chance on the visible workloads are told apart by further ones."""

from __future__ import annotations

from synthesis.graph.probes import probes
from synthesis.graph.program import read_program
from tests.synthesis.checking import graphs, problem

SOURCE = problem("return a0 @ a1", "torch.randn(rows, k), torch.randn(k, o)", sizes="rows=7, k=32, o=32")


def shapes(source: str, *workloads: dict[str, int]) -> list[list[str]]:
    traced = graphs(source, [{"name": f"w{number}", **sizes} for number, sizes in enumerate(workloads)])
    return [[size.text() for size in head.shape] for head in read_program(traced).heads]


def test_equal_sizes_are_told_apart() -> None:
    assert shapes(SOURCE, {"rows": 7, "k": 32, "o": 32}, {"rows": 9, "k": 48, "o": 48}) == [["rows", "k"], ["k", "o"]]


def test_a_single_workload_with_equal_sizes_is_probed_in_every_size() -> None:
    assert shapes(SOURCE, {"rows": 7, "k": 32, "o": 32}) == [["rows", "k"], ["k", "o"]]


def test_a_size_that_is_always_one_stays_a_dimension() -> None:
    assert shapes(SOURCE, {"rows": 1, "k": 32, "o": 16}, {"rows": 1, "k": 64, "o": 8}) == [["rows", "k"], ["k", "o"]]


def test_sizes_that_differ_need_no_probe() -> None:
    assert probes([{"name": "a", "sizes": {"rows": 7, "k": 32, "kind": "float32", "flag": True}}]) == []


def test_a_probe_that_the_reference_refuses_is_left_out() -> None:
    source = problem(
        "assert a0.shape == a1.shape\nreturn a0 + a1", "torch.randn(left), torch.randn(right)", sizes="left=7, right=7"
    )
    assert shapes(source, {"left": 8, "right": 8}, {"left": 6, "right": 6}) == [["left"], ["left"]]
