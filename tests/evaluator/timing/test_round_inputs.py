"""Inputs of timed calls."""

from __future__ import annotations

import pytest
import torch

from evaluator.child.protocol import chain
from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.timing.round_inputs import InputMaker


def inputs(judge: Judge, forward: str, recipe: str):
    """Inputs for a reference of one line, with its child."""
    source = f"import torch\ndef reference(*x):\n    return {forward}\ndef get_inputs():\n    return [{recipe}]\n"
    problem = read_problem(source, "inputs")
    subject = judge.session.references.start(problem)
    return subject, lambda child: InputMaker(Oracle(problem, child, {}, torch.Generator().manual_seed(3)))


def test_integers_are_those_of_draws_and_none_comes_twice(judge: Judge) -> None:
    bounds = "torch.cat([torch.zeros(1, dtype=torch.int64), torch.randint(1, 9000, (4,)).cumsum(0)])"
    held, make = inputs(judge, "x[0].sum() + x[1].sum()", f"torch.randn(50), {bounds}")
    with held as child:
        made = make(child)
        made._draw_s = 1e-5
        calls, _ = made.calls(24, {})
    assert all(int(b[0]) == 0 and bool((b[1:] > b[:-1]).all()) for _, b in calls)
    assert len({tuple(b.tolist()) for _, b in calls}) > 14  # a twin has its neighbour's
    assert len({tuple(x.tolist()) for x, _ in calls}) == 24


def test_slow_recipes_are_drawn_from_less_often(judge: Judge) -> None:
    held, make = inputs(judge, "x[0] * 2", "torch.randint(0, 10**6, (50,))")
    with held as child:
        made = make(child)
        made._draw_s = 10.0
        calls, _ = made.calls(8, {})
    assert len({tuple(sorted(x.tolist())) for (x,) in calls}) == 3  # the first draws
    assert len({tuple(x.tolist()) for (x,) in calls}) > 4  # who keeps answers by the order of the integers finds few


def test_matrices_that_must_have_a_root_are_drawn_whole(judge: Judge) -> None:
    held, make = inputs(judge, "torch.linalg.cholesky(x[0])", "(lambda a: a @ a.T + torch.eye(9))(torch.randn(9, 9))")
    with held as child:
        made = make(child)
        assert not made.mixed
        assert made.kinds(values.TIMED) == []
        assert made.link(made.bases[0], 0, 81) is None
        calls, _ = made.calls(6, {})
        assert made._oracle.try_calls(made.tree, calls) is not None
    assert len({tuple(x.flatten().tolist()) for (x,) in calls}) == 6


def test_value_sets_that_the_reference_refuses_are_left_out(judge: Judge) -> None:
    picky = "x[0] * 2 if bool(torch.isfinite(x[0]).all()) else 1 / 0"
    held, make = inputs(judge, picky, "torch.randn(6, 9)")
    with held as child:
        kinds = make(child).kinds(values.TIMED)
        assert child.child.alive
    assert values.WITH_NAN not in kinds
    assert values.WITH_INF not in kinds
    assert values.LARGE in kinds


def test_the_chain_leaves_zeros_of_a_triangle_alone(judge: Judge) -> None:
    held, make = inputs(
        judge, "x[0] @ x[1]", "torch.randn(40, 40).triu(), torch.randn(4, 4).sort(-1).values.repeat(10, 1)"
    )
    with held as child:
        made = make(child)
        (first, second), _ = made.calls(2, {})
        link = made.link(first, 0, 160)
    assert link is not None
    assert link.inputs == (0,)  # the other one stands in order
    chain.step([torch.randn(40, 4)], second, link)
    assert not bool(second[0].tril(-1).any())


@pytest.mark.parametrize(
    ("recipe", "linked"),
    [
        ("torch.randint(0, 90, (50,)), torch.randn(9)", (1,)),
        ("torch.randint(0, 90, (50,)), torch.rand(9) > 0.5", (0,)),
        ("torch.randint(0, 90, (50,)), torch.randint(0, 90, (70,))", (1,)),
        ("torch.randint(0, 90, (50,)).sort().values, torch.randint(0, 90, (9,))", (1,)),
        ("torch.arange(50), torch.rand(9) > 0.5", None),
    ],
)
def test_integers_are_chained_where_nothing_else_can_be(
    judge: Judge, recipe: str, linked: tuple[int, ...] | None
) -> None:
    held, make = inputs(judge, "x[0].sum() + x[1].sum()", recipe)
    with held as child:
        made = make(child)
        link = made.link(made.bases[0], 0, 1)
    assert (None if link is None else link.inputs) == linked


@pytest.mark.parametrize(
    ("recipe", "linked"),
    [
        (
            "torch.randn(70, 70), torch.randn(3, 3), torch.randint(0, 90, (9,)), torch.rand(5, dtype=torch.float64)",
            "013",
        ),
        ("torch.randn(70), torch.randn(1), torch.randn(9).bfloat16(), torch.ones(50)", "02"),
        (", ".join(f"torch.randn({size})" for size in (40, 7, 60, 50, 90, 30, 20, 6, 80, 70)), "02345689"),
    ],
    ids=["all floating ones", "not single elements, nor constants", "the largest eight"],
)
def test_all_random_floating_inputs_are_chained(judge: Judge, recipe: str, linked: str) -> None:
    held, make = inputs(judge, "sum(one.double().sum() for one in x)", recipe)
    with held as child:
        made = make(child)
        calls, _ = made.calls(3, {})
        links = [made.link(calls[0], 0, 40) for _ in range(8)]
    changed = set()
    for link in links:
        assert link is not None
        assert "".join(map(str, link.inputs)) == linked
        derived = chain.derive(calls, [[torch.randn(40)] for _ in calls], link)
        both = zip(calls[1:], derived[1:], strict=True)
        changed |= {i for old, new in both for i, (a, b) in enumerate(zip(old, new, strict=True)) if not a.equal(b)}
    assert "".join(map(str, sorted(changed))) == linked


def test_of_inputs_that_share_memory_one_is_chained(judge: Judge) -> None:
    held, make = inputs(judge, "x[0].sum() + x[1].sum() + x[2].sum()", "*torch.randn(3, 50),")
    with held as child:
        made = make(child)
        whole = torch.randn(120)
        for given, linked in (
            ((whole[:50], whole[50:100], torch.randn(50)), (0, 1, 2)),
            ((whole[:50], whole[49:99], torch.randn(50)), (0, 2)),
            ((whole[:50], whole[:50], whole[:50]), (0,)),
        ):
            link = made.link(given, 0, 1)
            assert link is not None
            assert link.inputs == linked
