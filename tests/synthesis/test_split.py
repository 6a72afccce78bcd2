"""Reductions of few long rows in two steps: what the first one takes, and that both are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from synthesis.graph.program import read_program
from synthesis.graph.split import split_reductions
from synthesis.kernel import Kernel
from synthesis.plan import make_plan
from tests.synthesis.checking import graphs, problem
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case, firsts


def lengths(source: str, *workloads: dict[str, int]) -> list[tuple[int, ...]]:
    """Return the lengths of the rows of every kernel, in each workload."""
    found = graphs(source, [{"name": str(number), **sizes} for number, sizes in enumerate(workloads)])
    steps = make_plan(split_reductions(read_program(found)))[0].steps
    return [step.length.values for step in steps if isinstance(step, Kernel)]


def test_few_long_rows_are_reduced_in_two_steps() -> None:
    source = problem("return ((a0 - a1) ** 2).mean()", "torch.randn(b, c), torch.randn(b, c)", sizes="b=2, c=3")
    workloads = {"b": 400, "c": 500}, {"b": 600, "c": 250}
    found = graphs(source, [{"name": "a", **workloads[0]}, {"name": "b", **workloads[1]}])
    assert len(make_plan(read_program(found))[0].steps) == 1
    assert lengths(source, *workloads) == [(500, 250), (400, 600)]


def test_many_rows_stay_one_step() -> None:
    source = problem("return a0.sum((1, 2))", "torch.randn(b, c, d)", sizes="b=2, c=3, d=4")
    assert len(lengths(source, {"b": 4000, "c": 50, "d": 70}, {"b": 6000, "c": 25, "d": 7})) == 1


IMAGES, SIZES = "torch.randn(b, c, h, h)", "b=2, c=3, h=5"


def test_as_many_dimensions_are_one_row_as_leave_parts_for_all_processors() -> None:
    """A second step over millions of parts would be one program's work."""
    large = {"b": 112, "c": 64, "h": 512}
    assert lengths(problem("return a0.square().sum()", IMAGES, sizes=SIZES), large) == [(512 * 512,), (112 * 64,)]
    assert lengths(problem("return a0.amax()", IMAGES, sizes=SIZES), large | {"b": 300}) == [(64 * 512 * 512,), (300,)]
    of_channels = "torch.randn(c, 1, 1)"
    weighted = problem("return (a0 * a1).sum()", f"{IMAGES}, {of_channels}", sizes=SIZES)
    assert lengths(weighted, large | {"b": 300}) == [(512 * 512,), (300 * 64,)]
    of_columns = problem("return (a0 * a1).sum()", f"{IMAGES}, torch.randn(h)", sizes=SIZES)
    assert lengths(of_columns, large) == [(512,), (112 * 64 * 512,)]


@pytest.mark.compiles
def test_both_steps_are_right(interpreter: Interpreter, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    formulas = {
        "norm": ("a0 / a0.norm(), a0.amax(), (a0 * a1).sum()", f"{IMAGES}, torch.randn(c, 1, 1)"),
        "deviation": ("(a0 - a0.mean((1, 2, 3), keepdim=True)) / a0.std((1, 2, 3), keepdim=True)", IMAGES),
    }
    cases = {}
    for name, (formula, inputs) in formulas.items():
        source = problem(f"return {formula}", inputs, sizes=SIZES)
        drafts = firsts(source, [{"name": "a", "b": 112, "c": 64, "h": 512}])
        assert any("of_rows" in draft.source for draft in drafts)
        cases[name] = case(tmp_path, name, source, drafts, [{"b": 3, "c": 5, "h": 7}, {"b": 1, "c": 2, "h": 40}])
    assert interpreter.check(cases) == dict.fromkeys(formulas, "right")
