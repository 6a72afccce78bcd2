"""Calls whose limits are computed a few at once, where all of them take too much memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from evaluator.comparison.expected import Expected
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import PARAMETER_SCALINGS
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge

SOFTMAX = """
import torch
def reference(x):
    return torch.softmax(x, -1)
def get_inputs():
    return [torch.randn(16, 64)]
"""
COUNTER = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x * self.calls
def get_inputs():
    return [torch.randn(16, 64)]
"""
GAIN = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(64))
    def forward(self, x):
        return x * self.gain
def get_inputs():
    return [torch.randn(16, 64)]
"""
NORM_AND_PRODUCT = """
import torch
def reference(x, weight, product):
    wide = x.float()
    normed = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).bfloat16() * weight
    return normed @ product
def get_inputs():
    return [torch.randn(1, 4096).bfloat16(), torch.randn(4096).bfloat16(), torch.randn(4096, 1).bfloat16()]
"""
BYTES = 16 * 64 * 4


def scale_after_product(x: torch.Tensor, weight: torch.Tensor, product: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return ((wide * weight.float()).bfloat16().float() @ product.float() * scale).bfloat16()


def sizes_at_once(judge: Judge, source: str, together_bytes: int) -> tuple[list[int], list[float]]:
    """Return how many of five calls are computed at once each time, and the sum of each expected output."""
    problem = read_problem(source, "together")
    generator = torch.Generator().manual_seed(0)
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, generator)
        oracle.together_bytes = together_bytes
        made = oracle.inputs()
        calls = [tuple(t * factor for t in made.tensors) for factor in (1.0, 2.0, 3.0, 4.0, 5.0)]
        found = oracle.expect(made.tree, calls)
        assert all(expected.complete for expected in found)
        slices = [some.stop - some.start for some in oracle._together(calls)]
    return slices, [float(one.targets[0].oracle.sum()) for one in found]


def test_few_calls_are_computed_at_once_where_they_are_large(judge: Judge) -> None:
    whole, sums = sizes_at_once(judge, SOFTMAX, 5 * BYTES)
    parts, same = sizes_at_once(judge, SOFTMAX, 2 * BYTES)
    assert (whole, parts) == ([5], [2, 2, 1])
    assert sums == same
    assert sizes_at_once(judge, SOFTMAX, 1)[0] == [1, 1, 1, 1, 1]


def test_calls_that_share_state_stay_together(judge: Judge) -> None:
    assert sizes_at_once(judge, COUNTER, 1)[0] == [5]


def test_one_number_is_refused_for_an_error_and_not_by_chance(judge: Judge) -> None:
    """Its error and the reference's are single draws, so a small one of the reference must not decide."""
    problem = read_problem(NORM_AND_PRODUCT, "one_number")
    generator = torch.Generator().manual_seed(0)
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, generator)
        calls = [tuple(oracle.inputs().tensors) for _ in range(200)]
        found = oracle.expect(oracle.inputs().tree, calls)
    right = [scale_after_product(*call) for call in calls]
    refused = [one.targets[0].compare(y, one.limits[0]) for one, y in zip(found, right, strict=True)]
    assert [finding.reason for finding in refused if finding] == []
    wrong = [scale_after_product(*call) * 1.05 for call in calls]
    passed = [one.targets[0].compare(y, one.limits[0]) is None for one, y in zip(found, wrong, strict=True)]
    assert sum(passed) < len(calls) / 2


@pytest.mark.parametrize(("runs_s", "slowest_s"), [((20.0, 0.002), 0.002), ((0.5, 0.4), 0.4), ((0.05,), 0.05)])
def test_a_long_call_is_timed_twice_before_it_counts(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, runs_s: tuple[float, ...], slowest_s: float
) -> None:
    """A machine that stands still for seconds must not give an endless loop its ten minutes."""
    readings = iter([reading for took_s in runs_s for reading in (0.0, took_s)])
    problem = read_problem(COUNTER, "stood_still")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(0))
        made = oracle.inputs()
        monkeypatch.setattr("evaluator.oracle.oracle.time", SimpleNamespace(perf_counter=lambda: next(readings)))
        results = oracle.try_calls(made.tree, [made.tensors])
    assert results is not None
    assert torch.equal(results[0][1][0], made.tensors[0])
    assert oracle.slowest_call_s == slowest_s
    assert list(readings) == []


SPLIT = """
import torch
def reference(x):
    high = x.to(torch.bfloat16)
    return high, (x - high.float()).to(torch.bfloat16)
def get_inputs():
    return [torch.randn(16, 64)]
"""


def expected_of(judge: Judge, source: str) -> tuple[tuple[torch.Tensor, ...], Expected, Expected]:
    """Return a draw of a Problem's inputs, what to expect of it, and the same with limits of another call."""
    problem = read_problem(source, "expected")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(0))
        made = oracle.inputs()
        (expected,) = oracle.expect(made.tree, [made.tensors])
        (again,) = oracle.targets(made.tree, [made.tensors], expected)
        return tuple(made.tensors), expected, again


def refuses(expected: Expected, place: int, actual: torch.Tensor) -> bool:
    return expected.targets[place].compare(actual, expected.limits[place]) is not None


def test_what_vanishes_in_float64_is_compared_with_the_reference(judge: Judge) -> None:
    (x,), *found = expected_of(judge, SPLIT)
    low = (x - x.bfloat16().float()).bfloat16()
    for expected in found:
        assert not refuses(expected, 1, low)
        assert refuses(expected, 1, torch.zeros_like(low))


def test_noise_of_a_cancellation_does_not_stand_in_for_the_oracle(judge: Judge) -> None:
    """Another order of the same sum leaves other noise."""
    noisy = SPLIT.replace("(x - high.float()).to(torch.bfloat16)", "x.exp() - x.double().exp().float() * 1")
    (x,), *found = expected_of(judge, noisy)
    assert not any(refuses(expected, 1, torch.zeros_like(x)) for expected in found)


def norm_limits(judge: Judge, body: str, inputs: str) -> list[float]:
    source = f"import torch\ndef reference(x, scale):\n    return {body}\ndef get_inputs():\n    return [{inputs}]\n"
    return [limit.norm for limit in expected_of(judge, source)[1].limits]


@pytest.mark.parametrize(
    ("body", "kind", "scale", "wide"),
    [
        ("x.abs().sum(-1) * scale.abs().sum(-1)", "complex128", "complex128", [True]),
        ("x.sum(-1) * scale[0, 0]", "float32", "float64", [False]),
        ("(x.sum(-1), scale.sum(-1))", "float32", "float64", [False, True]),
    ],
)
def test_limits_follow_from_the_precision_of_each_output(
    judge: Judge, body: str, kind: str, scale: str, wide: list[bool]
) -> None:
    inputs = f"torch.randn(4, 4096, dtype=torch.{kind}), torch.ones(4, 64, dtype=torch.{scale})"
    found = norm_limits(judge, body, inputs)
    assert [limit < 1e-10 for limit in found] == wide
    alone = norm_limits(judge, "x.sum(-1) * scale", "torch.randn(4, 4096), torch.ones(())")
    assert all(limit > alone[0] / 5 for limit in found if limit > 1e-10)


def test_limits_far_from_the_initial_parameters_are_twice_as_wide(judge: Judge) -> None:
    """A scan step by step was refused at parameters that no training reaches, with 1.3 times the limit."""
    problem = read_problem(GAIN, "gain")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(0))
        made = oracle.inputs()
        (usual,) = oracle.expect(made.tree, [made.tensors])
        for scaling in PARAMETER_SCALINGS:
            with oracle.with_scaled_state(scaling, made.tree, [made.tensors]) as found:
                ((_, far),) = found
            assert far.limits[0].norm > 1.4 * usual.limits[0].norm
            assert far.limits[0].element > 1.4 * usual.limits[0].element
