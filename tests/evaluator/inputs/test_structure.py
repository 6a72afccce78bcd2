"""Structure that draws of a recipe share and derived inputs keep."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.inputs import structure, values


def draw(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def symmetric(n: int, generator: torch.Generator) -> torch.Tensor:
    half = torch.randn(n, n, generator=generator)
    return half + half.T


@given(st.integers(2, 9), st.integers(0, 2**20), st.sampled_from(values.ADVERSARIAL))
def test_a_triangle_stays_one(n: int, seed: int, kind: values.ValueSet) -> None:
    generator = draw(seed)
    # A dozen free numbers: three draws of three are sorted by chance once in 216.
    draws = [(torch.randn(n, n, generator=generator).triu(), torch.randn(12, generator=generator)) for _ in range(3)]
    kept = structure.find_structures(draws)
    triangle, free = structure.apply_values(draws[0], kind, kept, generator)
    assert not bool(triangle.tril(-1).any())
    assert not kept[1]
    assert free.shape == (12,)


def test_a_triangle_in_which_a_draw_has_a_zero_by_chance_stays_one() -> None:
    draws = [(torch.randn(40, 40, generator=draw(seed)).triu(),) for seed in range(3)]
    draws[1][0][3, 30] = 0.0
    (made,) = structure.restored((torch.ones(40, 40),), structure.find_structures(draws))
    assert torch.equal(made, torch.ones(40, 40).triu())


@given(st.integers(2, 9), st.integers(0, 2**20), st.sampled_from(values.ADVERSARIAL))
def test_a_symmetric_matrix_stays_one(n: int, seed: int, kind: values.ValueSet) -> None:
    generator = draw(seed)
    draws = [(symmetric(n, generator),) for _ in range(3)]
    (made,) = structure.apply_values(draws[0], kind, structure.find_structures(draws), generator)
    assert values.same_bits(made, made.T)


@given(st.integers(3, 9), st.integers(0, 2**20), st.sampled_from(values.ADVERSARIAL))
def test_sorted_values_stay_sorted(n: int, seed: int, kind: values.ValueSet) -> None:
    generator = draw(seed)
    draws = [(torch.randn(2, n, generator=generator).sort(-1).values,) for _ in range(3)]
    (made,) = structure.apply_values(draws[0], kind, structure.find_structures(draws), generator)
    assert bool((made[:, 1:] >= made[:, :-1]).all())


@pytest.mark.parametrize(
    "make",
    [
        lambda g: torch.relu(torch.randn(40, 40, generator=g)),
        lambda g: torch.zeros(6, 6),
        lambda g: torch.eye(6),
        lambda g: torch.randn(6, 6, generator=g),
        lambda g: torch.rand(6, 6, generator=g) > 0.5,
        lambda g: torch.randn((), generator=g),
    ],
)
def test_other_draws_have_none(make) -> None:
    generator = draw()
    assert not any(structure.find_structures([(make(generator),) for _ in range(3)]))
    assert not any(
        structure.find_structures([(torch.randn(4, 4, generator=generator).triu(),)])
    )  # of one draw nobody can tell


def test_layouts_and_dtypes_stay() -> None:
    generator = draw()
    draws = [(symmetric(5, generator).to(torch.bfloat16).T,) for _ in range(3)]
    (made,) = structure.restored(
        (torch.randn(5, 5, generator=generator).to(torch.bfloat16).T,), structure.find_structures(draws)
    )
    assert (made.dtype, made.stride()) == (torch.bfloat16, (1, 5))
    assert torch.equal(made, made.T)


@pytest.mark.parametrize(("row", "column"), [(1, 4), (4, 1), (2, 2)])
def test_nan_and_infinities_stay_in_a_symmetric_matrix(row: int, column: int) -> None:
    halves = [torch.randn(6, 6, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    draws = [(half + half.mT,) for half in halves]
    changed = draws[0][0].clone()
    changed[row, column] = torch.nan
    (made,) = structure.restored((changed,), structure.find_structures(draws))
    assert sorted(map(tuple, made.isnan().nonzero().tolist())) == sorted({(row, column), (column, row)})
