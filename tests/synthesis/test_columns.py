"""Generated Triton for reductions over dimensions that are not the last: values, and what it compiles to for sm_90."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import graphs, problem
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case, compiled

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles

X = "torch.randn(b, n, w)"
SPECIAL = "(torch.randn(b, n, w) + 2).round().log()"  # some NaN and infinities
SIZES = "b=2, n=37, w=45"
SHOWN = [{"name": "a", "b": 2, "n": 37, "w": 45}, {"name": "b", "b": 3, "n": 64, "w": 64}]
CHECKED = [*SHOWN, {"name": "wide", "b": 1, "n": 5, "w": 301}, {"name": "long", "b": 1, "n": 700, "w": 3}]
CASES: dict[str, tuple[str, str]] = {
    "sums": ("return a0.sum(1, keepdim=True), (a0 * 2).mean(1)", X),
    "sums of the first dimension": ("return a0.sum(0), a0.mean((0, 1)), a0.sum((0, 2))", X),
    "extrema": ("return a0.amax(1), a0.amin(1), torch.max(a0, 1)[0], torch.min(a0, 1, keepdim=True).values", X),
    "special values": ("return a0.sum(1), a0.amax(1), a0.amin(1), torch.softmax(a0, 1)", SPECIAL),
    "norms": ("return a0 / torch.sqrt(a0.pow(2).mean(1, keepdim=True) + 1e-5), F.normalize(a0, p=1.0, dim=1)", X),
    "softmax": ("return torch.softmax(a0, 1), torch.log_softmax(a0, 1), torch.logsumexp(a0, 1)", X),
    "layer norm of channels": (
        "m = a0.mean(1, keepdim=True)\n"
        "v = a0.var(1, keepdim=True, unbiased=False)\n"
        "return (a0 - m) * torch.rsqrt(v + 1e-6) * a1[:, None] + 1",
        f"{X}, torch.randn(n)",
    ),
    "deviations": ("return a0.std(1), a0.norm(dim=1), torch.linalg.vector_norm(a0, 1, 1)", X),
    "half precision": (
        "return a0.sum(1), a0.amax(1), torch.softmax(a0, 1), a0.sum((0, 2)), (a0 + 9).var((0, 2))",
        f"{X}.half()",
    ),
    "another layout": ("return a0.sum(1), torch.softmax(a0, 1)", "torch.randn(b, w, n).transpose(1, 2)"),
}


def source_of(name: str) -> str:
    return problem(*CASES[name], sizes=SIZES)


def first(source: str, workloads: list[dict[str, Any]]) -> Draft:
    draft = next(iter(sequence(graphs(source, workloads), DeviceKind.CUDA, 0)))
    assert "across" in draft.strategy
    assert not draft.left
    return draft


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, interpreter: Interpreter, tmp_path: Path) -> None:
    asked = case(tmp_path, "columns", source_of(name), [first(source_of(name), SHOWN)], CHECKED)
    assert interpreter.check({name: asked}) == {name: "right"}


# References, sizes of a device's work, and how each kernel of a call loads from memory.
LARGE: dict[str, tuple[str, str, dict[str, int], dict[str, str]]] = {
    "odd": ("return a0.sum(1)", X, {"b": 128, "n": 4096, "w": 4095}, {"columns_streamed": "ld"}),
    "aligned": ("return a0.amax(1)", X, {"b": 16, "n": 4096, "w": 512}, {"columns_streamed": "ld.v4"}),
    "channels": (
        "return a0 / a0.pow(2).mean(1, keepdim=True).sqrt()",
        X,
        {"b": 8, "n": 64, "w": 65536},
        {"columns": "ld.v4"},
    ),
    "halves": (
        "return torch.softmax(a0, 1)",
        f"{X}.bfloat16()",
        {"b": 8, "n": 256, "w": 4096},
        {"columns": "ld.v4"},
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_neighbours_are_read_together(name: str, tmp_path: Path) -> None:
    forward, inputs, sizes, loads = LARGE[name]
    source = problem(forward, inputs, sizes=SIZES)
    draft = first(source, [{"name": "large", **sizes}])
    launches = compiled({name: case(tmp_path, "large", source, [draft], [sizes])}, tmp_path)[name]
    found = {one["kernel"].removeprefix("fused_out_"): set(one["accesses"]) for one in launches}
    assert {mode: min(kinds) for mode, kinds in found.items()} == loads


@pytest.mark.parametrize(("width", "kind", "loads"), [(511, "ld", 16), (512, "ld.v4", 4)])
def test_a_thread_of_a_loop_loads_sixteen_elements_at_once(width: int, kind: str, loads: int, tmp_path: Path) -> None:
    sizes = {"b": 64, "n": 1024, "w": width}
    source = problem("return a0.sum(1)", X, sizes=SIZES)
    draft = first(source, [{"name": "large", **sizes}])
    (launch,) = compiled({"a": case(tmp_path, "large", source, [draft], [sizes])}, tmp_path)["a"]
    assert launch["spilled"] == 0
    assert launch["accesses"][kind] >= loads


LONG = [{"name": "a", "b": 1, "n": 4500, "w": 5}, {"name": "b", "b": 2, "n": 6000, "w": 3}]


@pytest.mark.parametrize("inputs", [SPECIAL, f"{X}.half()"], ids=["special", "half"])
def test_few_long_rows_are_reduced_in_parts(inputs: str, interpreter: Interpreter, tmp_path: Path) -> None:
    source = problem("return (a0 * 2).mean(1), a0.amax(1) + 1", inputs, sizes=SIZES)
    draft = first(source, LONG)
    assert "_columns_parts(" in draft.source
    sizes = [{"b": 1, "n": 700, "w": 5}]  # parts without an element, too
    assert interpreter.check({"long": case(tmp_path, "long", source, [draft], sizes)}) == {"long": "right"}


def test_parts_compile_for_sm_90(tmp_path: Path) -> None:
    sizes = {"b": 1, "n": 1 << 20, "w": 64}
    source = problem("return a0.sum(1)", X, sizes=SIZES)
    draft = first(source, [{"name": "large", **sizes}])
    launches = compiled({"a": case(tmp_path, "large", source, [draft], [sizes])}, tmp_path)["a"]
    assert [one["kernel"] for one in launches] == ["fused_out_columns_parts", "fused_out_of_parts_columns_streamed"]
    assert launches[0]["grid"] == [2, 128]
