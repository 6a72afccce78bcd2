"""Limits: honest rounding passes, half precision and single wrong elements do not, NaN is no wildcard."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit
from evaluator.types import Precision


def make(oracle: torch.Tensor, reference: torch.Tensor) -> tuple[Target, Limit]:
    target = Target(oracle, reference)
    norm, element = target.reference_error()
    return target, target.limit(norm, element, reference.dtype, Precision.EXACT, None)


def product(seed: int, rows: int = 16, inner: int = 64, columns: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, inner, generator=generator), torch.randn(inner, columns, generator=generator)


@given(seed=st.integers(0, 2**31), scale=st.sampled_from([1e-18, 1e-4, 1.0, 1e4]))
def test_another_order_of_summation_passes_at_any_scale(seed: int, scale: float) -> None:
    a, b = product(seed)
    a = a * scale
    target, limit = make(a.double() @ b.double(), a @ b)
    halves = a[:, :32] @ b[:32] + a[:, 32:] @ b[32:]
    assert target.compare(halves, limit) is None


@given(seed=st.integers(0, 2**31))
def test_bfloat16_inside_is_refused(seed: int) -> None:
    a, b = product(seed)
    target, limit = make(a.double() @ b.double(), a @ b)
    assert target.compare((a.bfloat16() @ b.bfloat16()).float(), limit) is not None


@given(seed=st.integers(0, 2**31), row=st.integers(0, 15), column=st.integers(0, 23))
def test_one_wrong_element_is_found_and_named(seed: int, row: int, column: int) -> None:
    a, b = product(seed)
    target, limit = make(a.double() @ b.double(), a @ b)
    wrong = a @ b
    wrong[row, column] += 1e-3 * wrong.abs().max()
    found = target.compare(wrong, limit)
    assert found is not None
    assert found.detail["index"] == [row, column]


@given(
    seed=st.integers(0, 2**31),
    noise=st.floats(-8, -1),
    shape=st.sampled_from([(), (40,), (9, 5), (6, 16), (2, 3, 32)]),
    size=st.sampled_from([1e-150, 1e-30, 1.0, 1e30, 1e150]),
    spike=st.floats(-8, 1),
)
def test_the_verdict_is_that_of_the_exact_errors(
    seed: int, noise: float, shape: tuple[int, ...], size: float, spike: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randn(shape, generator=generator, dtype=torch.float64) * size
    actual = oracle + torch.randn(shape, generator=generator, dtype=torch.float64) * (size * 10**noise)
    actual.view(-1)[seed % actual.numel()] += size * 10**spike
    target, limit = Target(oracle, None), Limit(1e-4, 1e-3)
    difference = (actual - oracle).abs() / size
    values = oracle / size
    whole = values.square().mean().sqrt()
    rows = (
        values.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-3 * whole) if shape[1:] and shape[-1] > 7 else whole
    )
    element = float((difference / torch.maximum(values.abs(), rows)).max())
    norm = float(difference.norm() / values.norm())
    if abs(norm / limit.norm - 1) > 1e-9 and abs(element / limit.element - 1) > 1e-9:
        assert (target.compare(actual, limit) is None) == (norm <= limit.norm and element <= limit.element)


def test_a_wrong_row_of_small_values_is_not_hidden_by_large_rows() -> None:
    oracle = torch.randn(8, 32, dtype=torch.float64)
    oracle[3] *= 1e-3
    target, limit = make(oracle, oracle.float())
    wrong = oracle.float()
    wrong[3] *= 1.01
    assert target.compare(wrong, limit) is not None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_fails_where_a_finite_one_is_right(value: float) -> None:
    oracle = torch.randn(4, 16, dtype=torch.float64)
    target, limit = make(oracle, oracle.float())
    wrong = oracle.float()
    wrong[1, 2] = value
    assert target.compare(wrong, limit) is not None
    assert target.compare(torch.full_like(wrong, value), limit) is not None


def test_nan_and_infinity_must_be_where_the_reference_has_them() -> None:
    oracle = torch.randn(4, 16, dtype=torch.float64)
    oracle[0] = math.nan
    oracle[1, 3] = math.inf
    target, limit = make(oracle, oracle.float())
    good = oracle.float()
    assert target.compare(good, limit) is None
    for index, value in (((0, 0), 0.0), ((1, 3), -math.inf), ((1, 3), math.nan), ((2, 2), math.nan)):
        wrong = good.clone()
        wrong[index] = value
        assert target.compare(wrong, limit) is not None


def test_where_the_reference_overflows_the_oracle_passes_too() -> None:
    oracle = torch.tensor([[1e300, 2.0]], dtype=torch.float64)
    target, limit = make(oracle, oracle.float())
    assert target.compare(torch.tensor([[math.inf, 2.0]]), limit) is None
    assert target.compare(torch.tensor([[0.0, 2.0]]), limit) is not None


def test_where_the_reference_overflows_what_is_right_may_be_rounded() -> None:
    right = torch.tensor(299.345839, dtype=torch.float64)
    target, limit = make(right, torch.tensor(math.inf, dtype=torch.float16))
    assert target.compare(right.half(), limit) is None
    assert target.compare(torch.tensor(301.0).half(), limit) is not None


def test_where_the_reference_has_nan_the_oracles_size_is_near_enough() -> None:
    oracle = torch.tensor([[3.0, 2.0, 4.0, 1.0]], dtype=torch.float64)
    target, limit = make(oracle, torch.tensor([[math.nan, 2.0, 4.0, 1.0]]))
    for first, second, right in (
        (0.0, 2.0, True), (math.nan, 2.0, True), (3.0, 2.1, False), (1e3, 2.0, False), (math.inf, 2.0, False)
    ):  # fmt: skip
        assert (target.compare(torch.tensor([[first, second, 4.0, 1.0]]), limit) is None) == right, (first, second)


def test_statistics_side_by_side_are_measured_each_by_its_own_kind() -> None:
    sums, means = torch.full((16,), 5e4, dtype=torch.float64), torch.linspace(-1, 1, 16, dtype=torch.float64)
    oracle = torch.stack([sums, means], -1)
    target, limit = make(oracle, oracle.float())
    assert target.compare(oracle.float() * (1 + 1e-7), limit) is None
    rough = torch.stack([sums, means + 0.01], -1).float()
    assert target.compare(rough, limit) is not None
    few, limit = make(oracle[:4], oracle[:4].float())  # of so few an element may be small by chance
    assert few.compare(rough[:4], limit) is None


def test_a_row_of_nan_but_for_one_number_is_no_row_of_small_numbers() -> None:
    """In a convolution's ReLU with a NaN in every input row, rounding to either side of zero is right."""
    generator = torch.Generator().manual_seed(3)
    oracle = torch.randn(64, 32, generator=generator, dtype=torch.float64)
    oracle[8:] = torch.nan
    oracle[8:, 5] = 0.0
    reference = oracle.float() * (1 + 1e-6)
    target, limit = make(oracle, reference)
    other = reference.clone()
    other[20, 5] = 1e-6
    assert target.compare(other, limit) is None
    for place in ((20, 5), (3, 7)):
        wrong = reference.clone()
        wrong[place] += 1e-3
        found = target.compare(wrong, limit)
        assert found is not None
        assert found.detail["index"] == list(place)


def test_nan_in_a_row_does_not_excuse_other_errors_there() -> None:
    a, b = product(5)
    small = torch.full((16, 1), 1e-2)
    oracle, reference = (small * a).double() @ b.double(), (small * a) @ b
    oracle[0], reference[0] = 100 * oracle[0], 100 * reference[0]
    oracle[:, 3], reference[:, 3] = torch.nan, torch.nan
    target, limit = make(oracle, reference)
    wrong = reference.clone()
    wrong[7, 9] += 1e-5
    assert target.compare(reference, limit) is None
    assert target.compare(wrong, limit) is not None


def test_integers_must_be_equal() -> None:
    right = torch.arange(6).reshape(2, 3)
    target = Target(right, right.clone())
    assert target.compare(right.clone(), Limit(0, 0)) is None
    found = target.compare(right + (right == 4), Limit(0, 0))
    assert found is not None
    assert found.detail["index"] == [1, 1]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_quantised_values_may_round_a_tie_to_the_other_side(dtype: torch.dtype) -> None:
    right = (torch.arange(5000) % 100).to(dtype)
    target = Target(right, right.clone())
    step = (torch.arange(5000) % 1000 == 7).to(dtype)
    assert target.compare(right + step, Limit(0, 0)) is None
    assert target.compare(right + 2 * step, Limit(0, 0)) is not None  # two steps
    assert target.compare(right + (torch.arange(5000) % 500 == 7).to(dtype), Limit(0, 0)) is not None  # too many
    flags = Target(right % 2, right % 2)
    assert flags.compare((right + step) % 2, Limit(0, 0)) is not None
    wide = Target(right.int(), right.int())
    assert wide.compare((right + step).int(), Limit(0, 0)) is not None


def test_an_explicit_budget_and_tf32_widen_the_limit() -> None:
    a, b = product(1)
    target = Target(a.double() @ b.double(), a @ b)
    norm, element = target.reference_error()
    strict = target.limit(norm, element, torch.float32, Precision.EXACT, None)
    tf32 = target.limit(norm, element, torch.float32, Precision.TF32, None)
    budget = target.limit(norm, element, torch.float32, Precision.BUDGET, 1e-2)
    assert strict.norm < tf32.norm < budget.norm
    assert target.compare((a.bfloat16() @ b.bfloat16()).float(), budget) is None


def test_a_product_may_overflow_where_others_do_and_it_nearly_does() -> None:
    near, limit = 2e38, Limit(1e-6, 1e-5)
    right = torch.tensor([math.inf, near, 1.0])
    target = Target(right.double(), right)
    assert target.compare(torch.tensor([math.inf, math.inf, 1.0]), limit) is None
    assert target.compare(torch.tensor([math.inf, -math.inf, 1.0]), limit) is not None
    assert target.compare(torch.tensor([math.inf, near, math.inf]), limit) is not None
    alone = torch.tensor([1.0, near])
    assert Target(alone.double(), alone).compare(torch.tensor([1.0, math.inf]), limit) is not None


@pytest.mark.parametrize("fill", [torch.finfo(torch.float32).min, -1e9])
def test_a_mask_fill_is_left_out_of_the_scale(fill: float) -> None:
    a, b = product(3, rows=40, columns=40)
    mask = torch.ones(40, 40, dtype=torch.bool).triu(1)
    target, limit = make((a.double() @ b.double()).masked_fill(mask, fill), (a @ b).masked_fill(mask, fill))
    halves = (a[:, :32] @ b[:32] + a[:, 32:] @ b[32:]).masked_fill(mask, fill)
    assert target.compare(halves, limit) is None
    narrow = (a.bfloat16() @ b.bfloat16()).float().masked_fill(mask, fill)
    assert target.compare(narrow, limit) is not None
    for wrong in (-math.inf, math.nan, fill / 2, 0.0):
        assert target.compare(halves.masked_fill(mask, wrong), limit) is not None


def test_the_references_value_is_right_where_only_the_oracle_overflows_the_type() -> None:
    oracle = torch.linspace(-7e4, 7e4, 64, dtype=torch.float64).reshape(4, 16)
    reference = oracle.clamp(-6e4, 6e4).half()
    oracle = torch.where(oracle.abs() > 65520, oracle, reference.double())
    target, limit = make(oracle, reference)
    assert target.errors_in_float64(oracle * (1 + 1e-7))[1] < 1e-6
    assert target.compare(reference, limit) is None
    assert target.compare(oracle.half(), limit) is not None  # infinite there
    also = reference.clone()
    also[1, 3] = math.nan
    assert make(oracle, also)[0].compare(torch.where(also.isnan(), also, oracle.half()), limit) is not None


def test_an_overflow_by_rounding_is_no_clamp() -> None:
    oracle = torch.full((2, 8), 65521.0, dtype=torch.float64)
    target, limit = make(oracle, torch.full((2, 8), 65504.0).half())
    assert target.compare(oracle.half(), limit) is None
    assert target.compare(torch.full((2, 8), 65504.0).half(), limit) is None
    assert target.compare(torch.full((2, 8), -math.inf).half(), limit) is not None


def test_a_complex_number_that_is_not_finite_need_not_be_so_in_either_part() -> None:
    x = torch.randn(3, 32)
    x[1, 4] = math.inf
    right = torch.fft.rfft(x.double())
    target = Target(right, torch.fft.rfft(x), [x])
    limit = target.limit(1e-7, 1e-6, torch.complex64, Precision.EXACT, None)
    other = torch.fft.rfft(x)
    other[1] = complex(math.inf, math.nan)
    assert target.compare(other, limit) is None
    other[1, 3] = complex(0.0, 1.0)
    assert target.compare(other, limit) is not None
    other = torch.fft.rfft(x)
    other[2, 3] = complex(math.inf, 0.0)
    assert target.compare(other, limit) is not None


def test_the_order_of_a_sum_decides_on_infinities_but_nan_stays_nan() -> None:
    right = torch.full((2, 8), math.nan)
    right[1] = 1.0
    infinite = torch.where(right.isnan(), math.inf, right)
    for bad, passes in ((math.inf, True), (math.nan, False)):
        x = torch.ones(2, 8)
        x[0, 0] = bad
        target = Target(right.double(), right, [x])
        found = target.compare(infinite, Limit(1e-6, 1e-6))
        assert (found is None) is passes
    assert found is not None
    assert found.detail["origin"] == "input 0 holds NaN or infinities, which become something else in the reference"


def test_numbers_are_printed_in_as_many_digits_as_their_type_has() -> None:
    right = torch.full((4,), 1 / 3, dtype=torch.float64)
    wrong = right.clone()
    wrong[2] += 1e-12
    target = Target(right, right.clone())
    found = target.compare(wrong, Limit(3e-15, 3e-14))
    assert found is not None
    assert found.detail["expected"] == "0.33333333333333331"
    assert found.detail["actual"] == "0.33333333333433329"


def test_complex_numbers_lose_and_gain_nan_by_their_parts() -> None:
    right = torch.tensor([1 + 2j, complex(math.nan, 1.0)])
    target = Target(right.to(torch.complex128), right)
    actual = torch.tensor([complex(1.0, math.nan), complex(5.0, 1.0)])
    mended = target.copy_reference_nan(target.fill_nan(actual))
    assert mended.dtype is torch.complex64
    assert mended[0] == 1 + 2j
    assert math.isnan(mended[1].real)
    assert mended[1].imag == 1.0


def test_nan_may_fill_what_is_left_of_a_line_that_nearly_all_are_in() -> None:
    right = torch.full((2, 16), math.nan)
    right[0, 3] = 10.0
    right[1] = torch.arange(16.0)
    x = torch.ones(2, 16)
    x[0, 0] = math.nan
    target = Target(right.double(), right, [x])
    everywhere = right.clone()
    everywhere[0] = math.nan
    assert target.compare(everywhere, Limit(1e-6, 1e-6)) is None
    everywhere[1, 2] = math.nan
    assert target.compare(everywhere, Limit(1e-6, 1e-6)) is not None


@pytest.mark.parametrize(("finite", "passes"), [(2, True), (3, False)])
def test_infinities_may_fill_what_is_left_of_a_line_that_nearly_all_are_in(finite: int, passes: bool) -> None:
    right = torch.full((2, 16), math.inf)
    right[0, :finite] = 10.0
    right[1] = torch.arange(16.0)
    x = torch.ones(2, 16)
    x[0, 0] = math.inf
    target = Target(right.double(), right, [x])
    for other in (math.inf, -math.inf, math.nan):
        filled = right.clone()
        filled[0, :finite] = other
        assert (target.compare(filled, Limit(1e-6, 1e-6)) is None) is passes
        filled[1, 2] = other
        assert target.compare(filled, Limit(1e-6, 1e-6)) is not None


def test_short_lines_do_not_count_and_infinities_keep_their_sign_beside_numbers() -> None:
    x = torch.ones(1, 8)
    x[0, 0] = math.inf
    for right, passes in (
        (torch.full((8, 1), math.inf), True),  # a column
        (torch.full((4, 1), math.inf), False),
        (torch.tensor([[math.inf] * 7 + [1.0]]), False),
    ):
        target = Target(right.double(), right, [x])
        for other in (-math.inf, math.nan):
            assert (target.compare(torch.where(right.isinf(), other, right), Limit(1e-6, 1e-6)) is None) is passes


def test_an_infinity_may_be_nan_where_infinities_of_several_inputs_do_not_meet() -> None:
    right = torch.tensor([[math.inf, 1.0, 2.0]])
    a, b = torch.ones(1, 3), torch.ones(1, 3)
    a[0, 0] = b[0, 1] = math.inf
    lost = torch.tensor([[math.nan, 1.0, 2.0]])
    met, elsewhere = torch.full((4,), math.inf), torch.ones(1, 3)
    for inputs, passes in (
        ([a, b], True),
        ([b, b], True),  # not where it is lost
        ([a, a], False),
        ([a, elsewhere], False),
        ([a, met, met], False),  # who knows where
    ):
        assert (Target(right.double(), right, inputs).compare(lost, Limit(1e-6, 1e-6)) is None) is passes
