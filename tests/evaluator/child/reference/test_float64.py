"""Float64 mode: operations of the reference in narrower types happen in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from evaluator.child.reference.float64 import Float64Mode, NoFloat64Counterpart, in_float64, widened

Function = Callable[[torch.Tensor], torch.Tensor]


def lifted(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), in_float64(Float64Mode({})):
        return function(*inputs)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp((x - x.max(dim=-1, keepdim=True).values).half())
    return (e / e.sum(dim=-1, keepdim=True)).to(x.dtype)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Run attention on whole tensors, a call's own together with a computed one: torch compares their dtypes."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def _in_place(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(x.shape, dtype=torch.float32)
    y += x
    y[0].mul_(0.1)
    y.add_(x.float())
    return y


def _masked(x: torch.Tensor) -> torch.Tensor:
    keep = torch.tril(torch.ones(x.shape[-2:], dtype=torch.bool))
    return torch.nn.functional.softmax(x.masked_fill(~keep, float("-inf")), dim=-1, dtype=torch.float32)


F64 = torch.float64
_KEEP = torch.tril(torch.ones(8, 8, dtype=torch.bool))
_TWICE = torch.full((8, 1), 2.0, dtype=F64)
_TWICE[0] = 1.1

# Each function with what it comes to for float64 inputs when no cast rounds and no constant is narrow, by hand.
CASES: list[tuple[Function, Function]] = [
    (_softmax, lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)),
    (_in_place, lambda x: x * _TWICE),
    (_masked, lambda x: torch.exp(x) * _KEEP / (torch.exp(x) * _KEEP).sum(-1, keepdim=True)),
    (lambda x: x.float().to(torch.bfloat16) * torch.tensor(0.1), lambda x: x * 0.1),
    (
        lambda x: torch.nn.functional.layer_norm(x, (8,)) + torch.full((8,), 1 / 3),
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt() + 1 / 3,
    ),
    (lambda x: torch.nn.functional.gelu(x) @ x.T, lambda x: (x * (1 + torch.erf(x / math.sqrt(2))) / 2) @ x.T),
    (
        lambda x: torch.cumsum(x, 0).type_as(x) + torch.arange(8, dtype=torch.float32) / 7,
        lambda x: torch.tril(torch.ones(8, 8, dtype=F64)) @ x + torch.arange(8, dtype=F64) / 7,
    ),
    (
        lambda x: torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])[0, 0],
        lambda x: torch.softmax(x @ x.T / math.sqrt(8), -1) @ x,
    ),
    (
        lambda x: _attention(x, x, -x),
        lambda x: torch.softmax(x @ x.T / math.sqrt(8), -1) @ -x,
    ),
]


@pytest.mark.parametrize(("function", "by_hand"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_result_is_that_of_float64_on_the_same_inputs(
    function: Function, by_hand: Function, dtype: torch.dtype
) -> None:
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(3)).to(dtype)
    got = lifted(function, x)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, by_hand(x.double()), rtol=1e-14, atol=1e-14)


def test_casts_to_half_round_nothing() -> None:
    x = torch.tensor([1.0, 1 / 3, 1e-9])
    assert torch.equal(lifted(lambda t: t.half().float() * 3, x), x.double() * 3)


def test_constants_made_inside_are_exact() -> None:
    got = lifted(lambda t: t * torch.tensor(0.1) + torch.full((1,), 0.2), torch.ones(1))
    assert got.item() == 1 * 0.1 + 0.2
    assert torch.get_default_dtype() == torch.float32


def test_writes_into_an_input_are_seen_later() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.mul_(1 / 3)
        return x * 1.0

    assert lifted(function, torch.ones(1)).item() == 1 / 3


def test_integers_and_booleans_stay() -> None:
    got = lifted(lambda t: t.argmax(dim=-1), torch.eye(3))
    assert got.dtype == torch.int64


def test_reinterpreted_bits_have_no_float64_counterpart() -> None:
    with pytest.raises(NoFloat64Counterpart):
        lifted(lambda t: t.view(torch.int32), torch.ones(2))


def test_widened_leaves_integers_alone() -> None:
    assert widened(torch.arange(2)).dtype == torch.int64
    assert math.isclose(widened(torch.tensor(0.1)).item(), 0.10000000149011612)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (torch.conv1d, [(2, 4, 8), (6, 4, 3), (6,)]),
        (torch.conv2d, [(2, 4, 8, 8), (6, 4, 3, 3), (6,)]),
        (torch.conv3d, [(2, 4, 8, 8, 8), (6, 4, 3, 3, 3), (6,)]),
        (torch.nn.functional.bilinear, [(4, 8), (4, 6), (5, 8, 6), (5,)]),
        (torch.prelu, [(4, 8), (8,)]),
        (torch.Tensor.prelu, [(4, 8), (8,)]),
        (torch.inner, [(3, 8), (4, 8)]),
        (torch.Tensor.inner, [(3, 8), (4, 8)]),
        (lambda x, y: torch.tensordot(x, y, 1), [(4, 8), (8, 5)]),
        (lambda x, y: torch.linalg.multi_dot([x, y, x]), [(8, 8), (8, 8)]),
    ],
)
def test_computed_values_meet_parameters_in_their_own_precision(
    function: Callable[..., torch.Tensor], shapes: list[tuple[int, ...]], dtype: torch.dtype
) -> None:
    """A convolution with a bias after any other operation used to stay in its own precision."""
    first, *others = [torch.randn(shape).to(dtype) for shape in shapes]
    found = lifted(lambda x, *rest: function(x * 1.1, *rest), first, *others)
    wide = function(first.double() * 1.1, *(other.double() for other in others))
    assert found.dtype is torch.float64
    assert torch.allclose(found, wide, rtol=1e-12, atol=1e-12)


def test_constants_may_keep_the_references_precision() -> None:
    x = torch.rand(8)

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + (torch.arange(1, 9).float() / 3).exp()

    wide = lifted(shifted, x)
    mode = Float64Mode({})
    mode.variable_ids = frozenset({id(x)})
    with torch.no_grad(), in_float64(mode):
        own = shifted(x)
    assert own.dtype is wide.dtype is torch.float64
    constants = (torch.arange(1, 9).float() / 3).exp()
    assert torch.equal(own, x.double() + constants.double())
    assert not torch.equal(own, wide)
