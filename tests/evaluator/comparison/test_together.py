"""Many outputs compared at once: what is clearly right there is right for `Target`, too."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.comparison.expected import Expected
from evaluator.comparison.target import Target
from evaluator.comparison.together import clearly_right, equal
from evaluator.comparison.tolerances import Limit

CALLS = 5
LIMIT = Limit(norm=1e-6, element=1e-5)
SHAPES = st.lists(st.integers(1, 12), min_size=0, max_size=3)


def like(right: torch.Tensor, limit: Limit = LIMIT) -> Expected:
    return Expected({}, (Target(right, None),), (limit,), ("float32",))


def drawn(shape: list[int], seed: int) -> list[torch.Tensor]:
    """Return outputs of calls with rows of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.logspace(-4, 3, CALLS, dtype=torch.float64)
    some = [size * torch.randn(shape, generator=generator, dtype=torch.float64) for size in sizes]
    return [t * torch.logspace(0, -5, shape[-1], dtype=torch.float64) if shape else t for t in some]


@given(
    shape=SHAPES,
    seed=st.integers(0, 99),
    error=st.sampled_from([0.0, 1e-8, 1e-6, 5e-6, 1e-4]),
    places=st.integers(1, 40),
)
def test_what_is_clearly_right_is_right_by_itself(shape, seed, error, places):
    results = drawn(shape, seed)
    outputs = []
    for result in results:
        changed = result.clone().flatten()
        changed[:places] *= 1 + error
        outputs.append(changed.reshape(shape).to(torch.float32))
    found = clearly_right(like(results[0]), [[t] for t in results], [[t] for t in outputs])
    for result, output, right in zip(results, outputs, found, strict=True):
        if right:
            assert Target(result, None).compare(output, LIMIT) is None


@given(shape=SHAPES, seed=st.integers(0, 99))
def test_rounded_results_are_clearly_right(shape, seed):
    results = drawn(shape, seed)
    outputs = [[t.to(torch.float32)] for t in results]
    wide = Limit(norm=1e-6, element=1e-3)  # short rows hold elements of very different sizes
    assert clearly_right(like(results[0], wide), [[t] for t in results], outputs) == [True] * CALLS


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.0])
def test_one_wrong_call_of_many_is_found(value):
    results = drawn([4, 16], 1)
    outputs = [t.to(torch.float32) for t in results]
    outputs[3][2, 5] = value
    found = clearly_right(like(results[0]), [[t] for t in results], [[t] for t in outputs])
    assert found == [True, True, True, False, True]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e5])
def test_results_that_are_not_usual_numbers_are_left_to_others(value):
    results = drawn([4, 16], 1)
    results[2][0, 0] = value
    outputs = [[t.to(torch.float32)] for t in results]
    assert clearly_right(like(results[0]), [[t] for t in results], outputs) == [True, True, False, True, True]


def test_integers_are_compared_one_by_one():
    results = [torch.arange(6) + call for call in range(CALLS)]
    outputs = [t.clone() for t in results]
    outputs[1][4] += 1
    found = clearly_right(like(results[0], Limit(0, 0)), [[t] for t in results], [[t] for t in outputs])
    assert found == [True, False, True, True, True]


def test_every_output_of_a_call_counts():
    results = [[torch.ones(3, 8, dtype=torch.float64), torch.arange(4)] for _ in range(2)]
    outputs = [[torch.ones(3, 8), torch.arange(4)], [torch.ones(3, 8), torch.arange(4).flip(0)]]
    targets = tuple(Target(t, None) for t in results[0])
    expected = Expected({}, targets, (LIMIT, Limit(0, 0)), ("float32", "int64"))
    assert clearly_right(expected, results, outputs) == [True, False]


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(3, 8, dtype=torch.complex64),
        torch.ones(3, 8).to(torch.float8_e4m3fn),
        torch.ones(8, 3),
        torch.ones(24),
    ],
)
def test_outputs_that_cannot_be_stacked_are_left_to_others(output):
    results = [[torch.ones(3, 8, dtype=torch.float64)]]
    assert clearly_right(like(results[0][0]), results, [[output]]) == [False]


def test_no_calls_are_no_answers():
    assert clearly_right(like(torch.ones(2)), [], []) == []


def test_equal_tells_which_pairs_are():
    some = [torch.zeros(3, 4), torch.ones(3, 4), torch.full((3, 4), math.nan)]
    others = [torch.zeros(3, 4), torch.ones(3, 4).index_fill(1, torch.tensor([2]), 2.0), some[2].clone()]
    assert equal(some, others) == [True, False, False]
    assert equal([torch.zeros(3), torch.zeros(4)], [torch.zeros(3), torch.ones(4)]) == [True, False]
    assert equal([torch.tensor(1.0), torch.tensor(2.0)], [torch.tensor(1.0), torch.tensor(3.0)]) == [True, False]
