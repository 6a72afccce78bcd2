"""Values of which one input alone has some, or two have them in the same places."""

from __future__ import annotations

import torch

from evaluator.correctness import single_inputs
from evaluator.inputs.structure import Structure


def _made(*tensors: torch.Tensor) -> dict[str, tuple[torch.Tensor, ...]]:
    plain = [Structure() for _ in tensors]
    return dict(single_inputs.single_input_changes(tensors, plain, torch.Generator().manual_seed(3)))


def test_each_input_alone_has_a_nan() -> None:
    x, scale, index = torch.randn(4, 8), torch.tensor(0.5), torch.arange(4)
    made = _made(x, scale, index)
    assert list(made) == ["NaN in input 1 alone", "NaN in input 2 alone"]
    changed, same, _ = made["NaN in input 1 alone"]
    assert 1 <= int(changed.isnan().sum()) <= 8
    assert same is scale
    same, changed, _ = made["NaN in input 2 alone"]
    assert same is x
    assert bool(changed.isnan())


def test_infinities_of_either_sign_meet() -> None:
    made = _made(torch.randn(40, 50), torch.randn(40, 50), torch.randn(50))
    one, other, third = made["infinities that meet"]
    assert torch.equal(one.isinf(), other.isinf())
    assert len({(a, b) for a, b in zip(one[one.isinf()].tolist(), other[other.isinf()].tolist(), strict=True)}) >= 3
    assert bool(third.isfinite().all())


def test_two_inputs_share_rows_of_one_length() -> None:
    tensors = torch.randn(40), torch.randn(9, 8), torch.randn(5, 8, 8), torch.randn(9, 3)
    plain = [Structure() for _ in tensors]
    made = single_inputs.with_shared_rows(tensors, plain, torch.Generator().manual_seed(3))
    assert made is not None
    assert [one is other for one, other in zip(made, tensors, strict=True)] == [True, True, False, True]
    found = (made[2].reshape(-1, 1, 8) == tensors[1]).all(-1)
    assert 5 <= int(found.any(-1).sum()) <= 10
    symmetric = [Structure(), Structure(), Structure(symmetric=True), Structure()]
    assert single_inputs.with_shared_rows(tensors, symmetric, torch.Generator()) is None


def test_of_a_single_input_nothing_is_singled_out_and_numbers_in_order_stay_finite() -> None:
    assert _made(torch.randn(4, 8), torch.arange(4)) == {}
    two = torch.randn(4, 8).sort(-1).values, torch.randn(4, 8)
    ordered = [Structure(in_order=True), Structure()]
    made = dict(single_inputs.single_input_changes(two, ordered, torch.Generator().manual_seed(3)))
    assert "infinities that meet" not in made
    assert list(made) == ["NaN in input 2 alone"]


def test_a_nan_stays_within_what_all_draws_have_in_common() -> None:
    square = torch.randn(40, 40)
    zeros = torch.ones(40, 40).triu(1).bool()
    two = (square + square.T) / 2, square.masked_fill(zeros, 0)
    kept = [Structure(symmetric=True), Structure(zeros=zeros)]
    made = dict(single_inputs.single_input_changes(two, kept, torch.Generator().manual_seed(3)))
    symmetric = made["NaN in input 1 alone"][0].isnan()
    assert bool(symmetric.any())
    assert torch.equal(symmetric, symmetric.T)
    triangle = made["NaN in input 2 alone"][1]
    assert bool(triangle.isnan().any())
    assert bool((triangle[zeros] == 0).all())
