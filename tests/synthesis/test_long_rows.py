"""Layer normalisation of few long rows: right values in Triton's interpreter, and what is launched for sm_90."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.types import DeviceKind
from synthesis.strategies import sequence
from tests.synthesis.checking import graphs, problem
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case, compiled, firsts

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles

IMAGES, SIZES = "torch.randn(b, c, h, h) * 3 + 5", "b=2, c=3, h=5"
LARGE = {"b": 16, "c": 64, "h": 256}
FORMULAS = {
    "plain": ("F.layer_norm(a0, a0.shape[1:])", IMAGES),
    "weights": ("F.layer_norm(a0, a0.shape[1:], a1, a2, 0.1)", f"{IMAGES}, torch.randn(c, h, h), torch.randn(c, h, h)"),
    "what follows": ("F.gelu(F.layer_norm(a0, a0.shape[1:])) * a1 + a0", f"{IMAGES}, torch.randn(b, 1, 1, 1)"),
    "what comes before": ("F.layer_norm(a0.relu() + a1, a0.shape[1:], a1)", f"{IMAGES}, torch.randn(c, h, h)"),
    "other operands": ("F.layer_norm(a0, a0.shape[1:]) * a1", f"{IMAGES}, torch.randn(c, 1, 1)"),
    "two dimensions": ("F.layer_norm(a0.flatten(1), a0.flatten(1).shape[1:]).cos()", IMAGES),
    "special values": ("F.layer_norm(a0.round().log(), a0.shape[1:])", "(torch.randn(b, c, h, h) + 4.5)"),
}
CHECKED = [{"b": 2, "c": 3, "h": 7}, {"b": 3, "c": 2, "h": 64}, {"b": 1, "c": 1, "h": 1}, {"b": 1, "c": 3, "h": 97}]


def test_values(interpreter: Interpreter, tmp_path: Path) -> None:
    cases = {}
    for number, (name, (formula, inputs)) in enumerate(FORMULAS.items()):
        source = problem(f"return {formula}", inputs, sizes=SIZES)
        draft = firsts(source, [{"name": "a", **LARGE}])[0]
        assert "_long_rows(" in draft.source, name
        cases[name] = case(tmp_path, f"rows_{number}", source, [draft], CHECKED)
    assert interpreter.check(cases) == dict.fromkeys(FORMULAS, "right")


def test_all_that_follows_is_in_the_same_kernel(tmp_path: Path) -> None:
    source = problem(f"return {FORMULAS['what follows'][0]}", FORMULAS["what follows"][1], sizes=SIZES)
    draft = firsts(source, [{"name": "a", **LARGE}])[0]
    launches = compiled({"a": case(tmp_path, "large", source, [draft], [LARGE])}, tmp_path)["a"]
    assert [one["kernel"] for one in launches] == ["summarise_slices", "normalise_out"]
    assert [one["grid"] for one in launches] == [[4096], [4096]]
    assert [one["spilled"] for one in launches] == [0, 0]
    assert all(set(one["accesses"]) <= {"ld", "ld.v4", "st", "st.v4"} for one in launches)


@pytest.mark.parametrize(
    ("formula", "sizes"),
    [
        (FORMULAS["plain"][0], {**LARGE, "b": 300}),  # enough rows for all processors
        (FORMULAS["plain"][0], {**LARGE, "h": 16}),
        ("F.layer_norm(a0.transpose(0, 1), a0.transpose(0, 1).shape[1:])", LARGE),
    ],
    ids=["many", "short", "transposed"],
)
def test_other_rows_are_fused_as_before(formula: str, sizes: dict[str, int]) -> None:
    source = problem(f"return {formula}", IMAGES, sizes=SIZES)
    draft = next(iter(sequence(graphs(source, [{"name": "a", **sizes}]), DeviceKind.CUDA, 0)))
    assert "_long_rows(" not in draft.source
    assert not draft.left
