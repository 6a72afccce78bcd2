"""Errors of honest sums: the oracle with perturbed reductions, and the limits that follow."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from evaluator.child.reference.float64 import Float64Mode, in_float64
from evaluator.child.reference.rounding import PerturbedMode
from evaluator.comparison.target import Target
from evaluator.types import Precision

EPS = torch.finfo(torch.float32).eps
Function = Callable[[torch.Tensor], torch.Tensor]


def shaken(function: Function, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), in_float64(PerturbedMode({}, EPS)):
        return function(x)


def exact(function: Function, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), in_float64(Float64Mode({})):
        return function(x)


def rmsnorm(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def serial(x: torch.Tensor, lanes: int) -> torch.Tensor:
    """Compute RMSNorm in float32 like a kernel with `lanes` accumulators."""
    squares = x.pow(2).reshape(len(x), -1, lanes)
    sums = torch.zeros(len(x), lanes)
    for column in squares.unbind(1):
        sums += column
    return x * torch.rsqrt(sums.sum(-1, keepdim=True) / x.shape[-1] + 1e-6)


@pytest.mark.parametrize("value", [0.7310585, 1.375, 0.1, 3.3333333])
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_a_sum_of_equal_terms_in_a_few_lanes_is_right(value: float, lanes: int) -> None:
    x = torch.full((3, 4096), value)
    target = Target(exact(rmsnorm, x), rmsnorm(x))
    norm, element = target.errors(shaken(rmsnorm, x))
    limit = target.limit(norm, element, torch.float32, Precision.EXACT, None)
    assert target.compare(serial(x, lanes), limit) is None
    assert target.compare(serial(x, lanes) * 1.001, limit) is not None


def test_random_terms_allow_what_serial_additions_make_and_no_more() -> None:
    x = torch.randn(8, 8192, generator=torch.Generator().manual_seed(3))
    target = Target(exact(rmsnorm, x), rmsnorm(x))
    norm, element = target.errors(shaken(rmsnorm, x))
    limit = target.limit(norm, element, torch.float32, Precision.EXACT, None)
    assert target.compare(serial(x, 1), limit) is None
    assert limit.norm < 3e-6
    assert target.compare((x.bfloat16().float() * (rmsnorm(x) / x)), limit) is not None


def layernorm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (x.shape[-1],))


def serial_layernorm(x: torch.Tensor) -> torch.Tensor:
    mean, squares = torch.zeros(len(x), 1), torch.zeros(len(x), 1)
    for column in x.T:
        mean += column[:, None] / x.shape[-1]
    for column in x.T:
        squares += (column[:, None] - mean) ** 2
    return (x - mean) * torch.rsqrt(squares / x.shape[-1] + 1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_equal_deviations_that_a_serial_sum_swamps_are_right(seed: int, share: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(16, 8192, generator=generator)
    x[torch.rand(x.shape, generator=generator) < share] = 0.0
    target = Target(exact(layernorm, x), layernorm(x))
    limit = target.limit(*target.errors(shaken(layernorm, x)), torch.float32, Precision.EXACT, None)
    assert target.compare(serial_layernorm(x), limit) is None
    assert target.compare(layernorm(x) * 1.001, limit) is not None


def test_equal_terms_weigh_no_more_than_their_part_of_the_sum() -> None:
    x = torch.randn(16, 8192, generator=torch.Generator().manual_seed(1))
    x[:, ::3] = 1e-9
    before, after = exact(rmsnorm, x), shaken(rmsnorm, x)
    assert float((after - before).norm() / before.norm()) < 1e-6


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_rows_that_are_not_finite_leave_the_others_as_they_are(value: float) -> None:
    x = torch.full((4, 64), 0.3)
    x[0, 5] = value
    after = shaken(lambda x: x.sum(-1), x)
    assert after[1:].isfinite().all()
    assert not after[0].isfinite()


ROWS = torch.arange(32) % 3
REDUCTIONS: list[Function] = [
    lambda x: x.sum(-1),
    lambda x: x.mean(0),
    lambda x: x.cumsum(1),
    lambda x: x.var(-1),
    lambda x: x.norm(dim=-1),
    lambda x: torch.softmax(x, -1),
    lambda x: torch.log_softmax(x, -1),
    lambda x: torch.logsumexp(x, -1),
    lambda x: torch.nn.functional.layer_norm(x, (x.shape[-1],)),
    lambda x: torch.nn.functional.group_norm(x.reshape(4, 8, -1), 2),
    lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    lambda x: torch.stack(torch.var_mean(x, -1)),
    lambda x: x @ x.T,
    lambda x: torch.nn.functional.linear(x, x, x[:, 0]),
    lambda x: torch.nn.functional.conv1d(x[:, None], x[:4, None, :5]),
    lambda x: torch.nansum(x, -1),
    lambda x: torch.complex(x, x + 1).sum(-1),
    lambda x: torch.complex(x, x + 1).cumsum(-1),
    lambda x: torch.complex(x, x + 1) @ torch.complex(x, x + 1).T,
    lambda x: x.abs().prod(-1),
    lambda x: torch.zeros(3, 64).index_add(0, ROWS, x),
    lambda x: torch.zeros(64, 3).index_add_(1, ROWS, x.T),
    lambda x: torch.zeros(3, 64).scatter_add_(0, ROWS[:, None].expand(32, 64), x),
    lambda x: torch.zeros(3, 64).scatter_reduce(0, ROWS[:, None].expand(32, 64), x, "mean"),
    lambda x: torch.nn.functional.embedding_bag(ROWS, x, torch.tensor([0, 9]), mode="sum"),
    lambda x: torch.nn.functional.avg_pool2d(x[None], 8),
    lambda x: torch.nn.functional.adaptive_avg_pool2d(x[None], (2, 4)),
]


@pytest.mark.parametrize("function", REDUCTIONS)
def test_every_reduction_is_moved_a_little(function: Function) -> None:
    x = torch.randn(32, 64, generator=torch.Generator().manual_seed(5)) + 0.3
    before, after = exact(function, x), shaken(function, x)
    assert before.shape == after.shape
    moved = float((after - before).norm() / before.norm())
    assert 1e-9 < moved < 1e-4


@pytest.mark.parametrize("function", [torch.abs, torch.relu, lambda x: x.amax(-1)])
def test_operations_without_sums_stay_unperturbed(function: Function) -> None:
    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(6))
    assert torch.equal(exact(function, x), shaken(function, x))


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-20])
def test_a_kernel_that_avoids_cancellation_is_right(scale: float) -> None:
    def elu(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x, torch.exp(x) - 1)

    x = scale * torch.randn(16, 64, generator=torch.Generator().manual_seed(6))
    target = Target(exact(elu, x), elu(x))
    limit = target.limit(*target.errors(shaken(elu, x)), torch.float32, Precision.EXACT, None)
    assert target.compare(torch.where(x > 0, x, torch.expm1(x)), limit) is None
    assert scale < 1e-3 or target.compare(elu(x.bfloat16()).float(), limit) is not None


@pytest.mark.parametrize("inner", [64, 1024, 4096])
def test_a_product_with_one_accumulator_is_right_and_one_of_split_bfloat16_is_not(inner: int) -> None:
    generator = torch.Generator().manual_seed(inner)
    a, b = (torch.randn(24, inner, generator=generator) for _ in range(2))

    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ b.to(x.dtype).T

    target = Target(exact(product, a), product(a))
    good = [target.reference_error(), target.errors(shaken(product, a))]
    norm, element = (max(errors) for errors in zip(*good, strict=True))
    limit = target.limit(norm, element, torch.float32, Precision.EXACT, None)
    total = torch.zeros(24, 24)
    for left, right in zip(a.unbind(1), b.unbind(1), strict=True):
        total += left[:, None] * right
    assert target.compare(total, limit) is None
    high = [t.bfloat16().float() for t in (a, b)]
    low = [(t - h).bfloat16().float() for t, h in zip((a, b), high, strict=True)]
    split = high[0] @ high[1].T + high[0] @ low[1].T + low[0] @ high[1].T
    assert target.compare(split, limit) is not None


def test_values_that_are_not_finite_stay_what_they_are() -> None:
    x = torch.tensor([[1.0, float("nan")], [float("inf"), 2.0], [1.0, 2.0]])
    made = shaken(lambda t: t.sum(-1), x)
    assert made[0].isnan()
    assert made[1].isposinf()
    assert made[2].isfinite()


def test_weights_are_rounded_where_a_product_takes_them_and_scores_are_not() -> None:
    scores, v = 0.3 * torch.randn(8, 32), torch.randn(32, 16)  # small: no row's weights are all zeros and a one

    def attention(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x.T @ x, -1) @ v

    with torch.no_grad(), in_float64(PerturbedMode({}, 0.0, weights="bfloat16")):
        rounded = attention(scores)
    x = scores.double()
    # Outside the mode, which lifts casts to bfloat16, too.
    right = torch.softmax(x @ x.T @ x, -1).bfloat16().double() @ v.double()
    torch.testing.assert_close(rounded, right, rtol=1e-12, atol=1e-12)


def test_cancellation_in_float64_shows_with_every_operation_perturbed() -> None:
    x = torch.randn(4, 64, dtype=torch.float64) * 1e-4

    def nearly_nothing(x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(-x.square(), -1) - math.log(64)

    eps = torch.finfo(torch.float64).eps
    with torch.no_grad(), in_float64(PerturbedMode({}, eps, everywhere=True)):
        off = nearly_nothing(x)
    relative = ((off - nearly_nothing(x)) / nearly_nothing(x)).abs()
    assert 1e-9 < float(relative.max()) < 1e-5
