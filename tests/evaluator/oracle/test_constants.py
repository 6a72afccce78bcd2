"""Variants of the masks and indices that a recipe always makes alike."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.child.protocol.layout import read_tree
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.types import Problem


def draw() -> torch.Generator:
    return torch.Generator().manual_seed(3)


@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.integers(0, 2**20), st.integers(1, 16))
def test_a_line_of_a_mask_that_was_mixed_stays_so(shape: list[int], seed: int, times: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < 0.6
    changed = constants.perturbed(mask, generator, times)
    if changed is None:
        return
    assert changed.dtype is torch.bool
    assert 1 <= int((changed != mask).sum()) <= times
    for dim in range(mask.ndim):
        mixed = mask.any(dim) & ~mask.all(dim)
        assert bool((changed.any(dim) & ~changed.all(dim))[mixed].all())


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=30), st.integers(0, 2**20))
def test_integers_are_swapped_unless_they_are_sorted(numbers: list[int], seed: int) -> None:
    tensor = torch.tensor(numbers, dtype=torch.int32)
    changed = constants.perturbed(tensor, torch.Generator().manual_seed(seed), 4)
    in_order = numbers in (sorted(numbers), sorted(numbers, reverse=True))
    alike = len(set(numbers)) == 1
    if in_order and numbers != list(range(len(numbers))) and not (alike and numbers[0] > 0):
        assert changed is None
    if alike and changed is not None:
        assert set(changed.tolist()) <= set(range(numbers[0] + 1))
    elif changed is not None:
        assert sorted(changed.tolist()) == sorted(numbers)
        assert changed.tolist() != numbers


def test_one_change_is_one_element_or_one_pair() -> None:
    mask = torch.ones(20, 20, dtype=torch.bool).tril()
    one = constants.perturbed(mask, draw(), 1)
    assert one is not None
    assert int((one != mask).sum()) == 1
    positions = constants.perturbed(torch.arange(20), draw(), 1)
    assert positions is not None
    assert int((positions != torch.arange(20)).sum()) == 2


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4),
        torch.arange(0, 40, 5),
        torch.tensor([0, 0, 1, 1, 2]),
        torch.full((5,), 0),
        torch.full((5,), -3),
        torch.empty(0, dtype=torch.int64),
    ],
)
def test_other_tensors_stay_unchanged(tensor: torch.Tensor) -> None:
    assert constants.perturbed(tensor, draw(), 4) is None


def test_a_single_element_is_varied_too() -> None:
    for flag in (torch.ones(1, dtype=torch.bool), torch.tensor(False)):
        assert torch.equal(constants.perturbed(flag, draw(), 4), ~flag)
    assert constants.perturbed(torch.tensor([48]), draw(), 1) == 47
    assert constants.perturbed(torch.tensor(0), draw(), 4) is None


def task(forward: str, inputs: str) -> Problem:
    source = (
        f"import torch\ndef reference(x, what=None):\n    return {forward}\ndef get_inputs():\n    return [{inputs}]\n"
    )
    return read_problem(source, "constants")


CAUSAL = "torch.randn(6, 6), torch.ones(6, 6, dtype=torch.bool).tril()"
RANDOM = "torch.randn(6, 6), torch.rand(6, 6) > 0.5"


@pytest.mark.parametrize(
    ("forward", "inputs", "found"),
    [
        ("x * what", CAUSAL, True),
        ("x.masked_fill(~what, -torch.inf).softmax(-1)", CAUSAL, True),
        ("x[:, what]", "torch.randn(6, 6), torch.arange(6)", True),
        ("x * what", RANDOM, False),  # the recipe changes it
        ("x[what]", CAUSAL, False),  # other shapes
        ("x / what", CAUSAL, True),  # no NaN but infinities, which were there before
        ("(x * 0) / what.sum(0, keepdim=True).eq(6)", CAUSAL, False),  # NaN where there was none
        ("x * what if bool(what[5].all()) else 1 / 0", "torch.randn(6, 6), torch.ones(6, 6) > 0", False),
        ("x * what", "torch.randn(6, 6), torch.ones(6, 6)", False),  # floats are varied elsewhere
    ],
)
def test_the_reference_must_accept_the_change(judge: Judge, forward: str, inputs: str, found: bool) -> None:
    problem = task(forward, inputs)
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, draw())
        made = [oracle.inputs() for _ in range(3)]
        others = constants.find_constants(oracle, made[0].tree, [one.tensors for one in made])
        assert bool(others) is found
        assert reference.child.alive
        assert not constants.find_constants(oracle, made[0].tree, [made[0].tensors])  # of one alone nobody can tell
    if found:
        tensors = made[0].tensors
        changed, nearly = others.changed(tensors), others.slightly_changed(tensors, draw())
        assert changed[0] is nearly[0] is tensors[0]
        assert 0 < int((nearly[1] != tensors[1]).sum()) <= int((changed[1] != tensors[1]).sum())


@pytest.mark.parametrize(
    ("forward", "inputs", "found"),
    [
        ("x * what", "torch.randn(6), 2.0", 1.875),
        ("x * what['a'][0]", "torch.randn(6), {'a': (0.5, 3)}", {"a": (0.46875, 3)}),
        ("x * what", "torch.randn(6), 3", None),
        ("x * what", "torch.randn(6), 0.0", None),
        ("x + what", "torch.randn(6), float('inf')", None),
        ("x[: int(what)]", "torch.randn(6), 2.0", None),
        ("x * what if what == 2 else 1 / 0", "torch.randn(6), 2.0", None),
        ("torch.tensor([what - 2]).sqrt() + x", "torch.randn(6), 2.0", None),
    ],
)
def test_floats_become_smaller_where_the_reference_accepts_it(
    judge: Judge, forward: str, inputs: str, found: object
) -> None:
    problem = task(forward, inputs)
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, draw())
        made = oracle.inputs()
        others = constants.with_smaller_floats(oracle, made.tree, made.tensors)
        assert reference.child.alive
    assert (read_tree(others[0], lambda index: index)[1] if others else None) == found


def test_floats_change_together_slightly_and_one_by_one(judge: Judge) -> None:
    problem = task("x.clamp(*what[:2]) * what[2]", "torch.randn(6), (-4.0, 4.0, 2.0, 3)")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, draw())
        made = oracle.inputs()
        others = constants.with_smaller_floats(oracle, made.tree, made.tensors)
    assert [read_tree(other, lambda index: index)[1] for other in others] == [
        (-3.75, 3.75, 1.875, 3),
        pytest.approx((-3.996, 3.996, 1.998, 3)),
        (-3.75, 4.0, 2.0, 3),
        (-4.0, 3.75, 2.0, 3),
        (-4.0, 4.0, 1.875, 3),
    ]
