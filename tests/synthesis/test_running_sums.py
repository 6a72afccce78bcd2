"""Generated Triton for sums of all elements up to each one: from either end, masked, and without the element itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.types import DeviceKind
from synthesis.strategies import sequence
from tests.synthesis.checking import graphs, problem
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles

X, SIZES = "torch.rand(b, n)", "b=3, n=37"
SHOWN = [{"name": "a", "b": 3, "n": 37}, {"name": "b", "b": 2, "n": 64}]
CHECKED = [*SHOWN, {"name": "one", "b": 2, "n": 1}, {"name": "long", "b": 1, "n": 4501}]
BEFORE = "torch.cat((torch.zeros_like(a0[:, :1]), torch.cumsum(a0[:, :-1], -1)), -1)"
CASES = {
    "from the end": ("return torch.cumsum(a0.flip(1), 1).flip(1), (a0 * 2).flip(-1).cumsum(1).flip(1) + 1", X),
    "without the element": (f"return {BEFORE}", X),
    "masked": (
        "return torch.cumsum(a0 * (a1 > 0.5), 1), torch.cumsum((a0 * (a1 > 0.5)).flip(1), 1).flip(1)",
        f"{X}, {X}",
    ),
    "special values": (
        f"return torch.cumsum(a0.flip(1), 1).flip(1), {BEFORE}, a0.cumsum(1)",
        "(torch.randn(b, n) * 1.3 + 3).round().log2().floor()",
    ),
    "half precision": (f"return torch.cumsum(a0.flip(1), 1).flip(1), {BEFORE}", f"{X}.half()"),
    "large in half precision": ("return torch.cumsum(a0, 1)", "torch.full((b, n), -14.5).half()"),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, interpreter: Interpreter, tmp_path: Path) -> None:
    source = problem(*CASES[name], sizes=SIZES)
    draft = next(iter(sequence(graphs(source, SHOWN), DeviceKind.CUDA, 0)))
    assert not draft.left
    assert interpreter.check({name: case(tmp_path, "sums", source, [draft], CHECKED)}) == {name: "right"}


@pytest.mark.parametrize("forward", ["return a0.flip(1)", "return torch.cumsum(a0.flip(0), 1).flip(0) + 1"])
def test_other_flips_are_library_calls(forward: str) -> None:
    source = problem(f"{forward}, a0 * 2", X, sizes=SIZES)
    assert "flip" in next(iter(sequence(graphs(source, SHOWN), DeviceKind.CUDA, 0))).left


def test_a_pass_is_enough() -> None:
    for name in ("from the end", "without the element"):
        source = problem(*CASES[name], sizes=SIZES).replace(", (a0 * 2).flip(-1).cumsum(1).flip(1) + 1", "")
        draft = next(iter(sequence(graphs(source, SHOWN), DeviceKind.CUDA, 0)))
        assert draft.source.count("@triton.jit") == 1
