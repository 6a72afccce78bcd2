"""A kernel is right if it is right without the NaN and infinities that have no influence."""

from __future__ import annotations

import math

import pytest
import torch

from evaluator.oracle.nan_and_ties import allow_ignored_nan
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge

NAN, INF = math.nan, math.inf
CAUSAL = "torch.fft.irfft(torch.fft.rfft(x, n=4) * torch.fft.rfft(torch.tensor([1.0, 0.7]), n=4), n=4)[:2]"
MATRIX = "torch.tensor([[1.0, 0.0], [2.0, 3.0]])"
PAIRS = f"torch.complex({MATRIX} @ x, x[0] + x * 0)"
STEPS = "torch.tensor([[1.0, 0.0], [1.0, 1.0]]) @ torch.relu(x)"
NONE = complex(NAN, NAN)


@pytest.mark.parametrize(
    ("forward", "x", "actual", "right"),
    [
        (f"{MATRIX} @ x", [5.0, NAN], [5.0, NAN], True),  # as the reference has it but for zero times NaN
        (f"{MATRIX} @ x", [5.0, NAN], [NAN, NAN], True),
        (f"{MATRIX} @ x", [5.0, NAN], [5.0, 10.0], False),  # there it counts
        (f"{MATRIX} @ x", [5.0, NAN], [6.0, NAN], False),
        (f"{MATRIX} @ x", [5.0, INF], [5.0, INF], True),
        ("x.amax() + x * 0", [5.0, NAN], [5.0, NAN], False),  # NaN is the largest
        ("x.amin() + x * 0", [5.0, INF], [5.0, 5.0], False),  # another might be smaller
        ("x.sum() + x * 0", [5.0, INF], [INF, INF], True),  # infinite where that leads to
        ("x.sum() + x * 0", [5.0, NAN], [INF, NAN], False),
        ("x.sum() + x * 0", [5.0, -INF], [INF, INF], False),
        ("x * torch.rsqrt(x.square().sum())", [5.0, INF], [0.0, INF], False),  # it does not grow
        ("x - x", [5.0, INF], [0.0, 0.0], True),
        ("(x > 3) * 1.0 + x * 0", [5.0, NAN], [1.0, 0.0], False),
        (CAUSAL, [5.1, NAN], [5.1, NAN], True),  # only what the transform rounds
        (CAUSAL, [5.1, NAN], [5.2, NAN], False),
        (CAUSAL, [NAN, 5.1], [NAN, 5.1], False),
        (STEPS, [-INF, INF], [0.0, INF], True),  # the one counts, the other is multiplied by zero
        (STEPS, [-INF, INF], [1.0, INF], False),
        (STEPS, [2.0, INF], [2.0, INF], True),
        (PAIRS, [5.0, NAN], [5 + 5j, NONE], True),  # NaN, and 5 for the imaginary part
        (PAIRS, [5.0, NAN], [NONE, NONE], True),
        (PAIRS, [5.0, NAN], [6 + 5j, NONE], False),
        (PAIRS, [5.0, NAN], [5 + 6j, NONE], False),
        (PAIRS, [5.0, NAN], [5 + 5j, 10 + 5j], False),
    ],
)
def test_nan_and_infinities_without_influence(
    judge: Judge, forward: str, x: list[float], actual: list[complex], right: bool
) -> None:
    source = f"import torch\ndef reference(x):\n    return {forward}\ndef get_inputs():\n    return [torch.randn(2)]\n"
    problem = read_problem(source, "spared")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(3))
        tree, tensors, outputs = oracle.inputs().tree, (torch.tensor(x),), [torch.tensor(actual)]
        (expected,) = oracle.expect(tree, [tensors])
        expected = allow_ignored_nan(oracle, tree, tensors, expected, outputs) or expected
    found = expected.targets[0].compare(outputs[0], expected.limits[0])
    assert (found is None) is right, found


def test_finite_inputs_allow_no_alternatives(judge: Judge) -> None:
    source = (
        "import torch\ndef reference(x):\n    return x * 0 / (x - x)\ndef get_inputs():\n    return [torch.randn(2)]\n"
    )
    problem = read_problem(source, "spared")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(3))
        made = oracle.inputs()
        (expected,) = oracle.expect(made.tree, [made.tensors])
        assert allow_ignored_nan(oracle, made.tree, made.tensors, expected, [torch.ones(2)]) is None


def test_a_reference_that_refuses_a_number_allows_no_alternatives(judge: Judge) -> None:
    forward = "1 / 0 if torch.isfinite(x[1]) and x[1] > 7 else x[:1] * 1.5 + 0 * x"
    source = f"import torch\ndef reference(x):\n    return {forward}\ndef get_inputs():\n    return [torch.randn(2)]\n"
    problem = read_problem(source, "spared")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(3))
        tree, tensors = oracle.inputs().tree, (torch.tensor([5.0, NAN]),)
        (expected,) = oracle.expect(tree, [tensors])
        assert allow_ignored_nan(oracle, tree, tensors, expected, [torch.full((2,), 7.5)]) is not None
        tensors = (torch.tensor([9.0, NAN]),)  # what is above it is refused
        (expected,) = oracle.expect(tree, [tensors])
        assert allow_ignored_nan(oracle, tree, tensors, expected, [torch.full((2,), 13.5)]) is None
        assert oracle.in_float64
        assert reference.child.alive
