"""Large draws that a constructor makes on the CPU, made by a device instead."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from evaluator.child.device_draws import DeviceDraws

LARGE = 1 << 19


def linear() -> torch.Tensor:
    return torch.nn.Linear(1024, 1024).weight


DRAWS = {
    "linear": (linear, 0.0, 1 / 1024**0.5 / 3**0.5, torch.float32),
    "randn": (lambda: torch.randn(700, 750), 0.0, 1.0, torch.float32),
    "randn bfloat16": (lambda: torch.randn(LARGE, dtype=torch.bfloat16), 0.0, 1.0, torch.bfloat16),
    "rand": (lambda: torch.rand(LARGE), 0.5, 12**-0.5, torch.float32),
    "randint": (lambda: torch.randint(-127, 128, (LARGE,), dtype=torch.int8), 0.0, 73.6, torch.int8),
    "randint below": (lambda: torch.randint(11, (LARGE,)), 5.0, 10**0.5, torch.int64),
    "normal_": (lambda: torch.empty(LARGE).normal_(3.0, 0.5), 3.0, 0.5, torch.float32),
    "bernoulli_": (lambda: torch.empty(LARGE).bernoulli_(0.5), 0.5, 0.5, torch.float32),
    "embedding": (lambda: torch.nn.Embedding(4096, 256).weight, 0.0, 1.0, torch.float32),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_large_draw_has_its_distribution_dtype_and_device(name: str) -> None:
    draw, mean, deviation, dtype = DRAWS[name]
    torch.manual_seed(5)
    with DeviceDraws(torch.device("cpu")):
        made = draw()
    torch.manual_seed(5)
    with DeviceDraws(torch.device("cpu")):
        again = draw()
    assert torch.equal(made, again)
    assert (made.dtype, made.device.type) == (dtype, "cpu")
    # Five standard errors of the mean, and a hundredth of the deviation.
    assert abs(float(made.detach().double().mean()) - mean) < 5 * deviation / made.numel() ** 0.5 + 1e-9
    assert float(made.detach().double().std()) == pytest.approx(deviation, rel=0.01)


def test_parameters_keep_their_gradients_and_seeds_differ() -> None:
    with DeviceDraws(torch.device("cpu")):
        layer, other = torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 1024)
    assert layer.weight.requires_grad
    assert layer.weight.is_leaf
    assert not torch.equal(layer.weight, other.weight)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randn(100, 100),
        lambda: torch.randn(LARGE, generator=torch.Generator().manual_seed(3)),
        lambda: torch.empty(LARGE).normal_(generator=torch.Generator().manual_seed(3)),
        lambda: torch.empty(2048, 512).t().normal_(),
        lambda: torch.randperm(LARGE),
    ],
    ids=["small", "generator", "filled with a generator", "transposed", "order"],
)
def test_other_draws_are_left_alone(draw: object) -> None:
    assert callable(draw)
    torch.manual_seed(9)
    plain = draw()
    torch.manual_seed(9)
    with DeviceDraws(torch.device("meta")):  # a draw that went there could not be copied back
        assert torch.equal(draw(), plain)


def test_large_draws_go_to_the_device() -> None:
    with DeviceDraws(torch.device("meta")), pytest.raises(NotImplementedError):
        torch.randn(LARGE)


def test_the_compiler_is_not_loaded() -> None:
    text = """
import sys, torch
from evaluator.child.device_draws import DeviceDraws
with DeviceDraws(torch.device("cpu")):
    torch.nn.Linear(1024, 1024)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
