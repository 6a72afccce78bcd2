"""Triton compiles no variants for sizes that decide nothing about how memory is read and written."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.languages import gpu_kernels
from evaluator.problem import read_problem
from evaluator.screening.screen import screen
from evaluator.types import Candidate, DeviceKind, Language
from synthesis.dispatch.renaming import prefixed
from synthesis.draft import Draft
from synthesis.graph.sizes import Affine, Size
from synthesis.strategies import sequence
from synthesis.triton.specialise import jit, needed
from tests.synthesis.checking import ROOT, graphs, problem, sizes_of

ONE = Size((1, 1), 1)
KEYS, HEADS, QUERIES = Size((64, 128), "keys"), Size((8, 16), "heads"), Size((4, 5), "queries")


def position(const: Size = ONE - 1, **terms: Size) -> Affine:
    return Affine.of(const, {"j": ONE, **terms})


@pytest.mark.parametrize(
    ("offset", "wanted"),
    [
        (position(), {"keys"}),
        (position(o0=KEYS * QUERIES * HEADS, o1=KEYS), {"keys"}),
        (position(o0=KEYS * HEADS), {"keys"}),  # the length divides it
        (position(o0=QUERIES * HEADS), {"keys", "queries", "heads"}),
        (position(o0=QUERIES * HEADS, o1=QUERIES), {"keys", "queries"}),
        (position(o0=KEYS * HEADS - KEYS), {"keys"}),
        (position(o0=KEYS * HEADS - QUERIES), {"keys", "queries"}),
        (position(o0=KEYS * (HEADS // QUERIES)), {"keys"}),
        (position(o0=HEADS // QUERIES), {"keys", "heads", "queries"}),
        (position(const=HEADS, o0=KEYS), {"keys", "heads"}),
        (position(const=Size.literal(1, ONE), o0=QUERIES), {"keys"}),  # it is not aligned whatever there is beside
        (position(o0=ONE), None),  # its neighbours are those of a quotient
    ],
)
def test_sizes_count_that_divide_a_position(offset: Affine, wanted: set[str] | None) -> None:
    assert needed([offset], [KEYS], [KEYS]) == wanted


def test_the_decorator_names_the_others() -> None:
    assert jit(["a", "b"], {"a", "b"}) == "@triton.jit"
    assert jit(["b", "a", "c"], {"c"}) == '@triton.jit(do_not_specialize=["a", "b"])'


def drafts(source: str, workloads: list[dict[str, Any]]) -> list[Draft]:
    return list(sequence(graphs(source, workloads), DeviceKind.CUDA, 0))


def free(text: str) -> list[set[str]]:
    """Return the sizes that each kernel lists."""
    found = re.findall(r"@triton\.jit(?:\(do_not_specialize=\[(.*?)\]\))?\ndef [^_]", text)
    return [set(re.findall(r"\w+", names)) for names in found]


def example(name: str) -> tuple[str, list[dict[str, Any]]]:
    source = (ROOT / "examples" / "problems" / f"{name}.py").read_text(encoding="utf-8")
    return source, sizes_of(source, "cuda")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("softmax_scale_mask", [{"batch", "heads", "queries"}]),
        ("rmsnorm_residual", [{"rows"}]),
        ("decode_attention", [{"batch", "heads", "kv_heads", "length", "span"}, {"parts"}]),
        ("gated_mlp", [set()] * 4),  # a product of one row is another kernel
    ],
)
def test_examples(name: str, wanted: list[set[str]]) -> None:
    assert free(drafts(*example(name))[0].source) == wanted


def test_rows_that_lie_across_memory_keep_variants_of_their_width() -> None:
    """Loads begin at multiples of the width, so they are aligned where it is, whatever the length of a row."""
    source = problem("return a0.sum(1)", "torch.randn(b, n, m)", sizes="b=2, n=100, m=16")
    sizes = [{"name": "a", "b": 2, "n": 100, "m": 16}, {"name": "b", "b": 3, "n": 128, "m": 33}]
    for draft in drafts(source, sizes):
        for names in free(draft.source):
            assert not names & {"a0_2", "m"}


def test_scores_that_load_along_the_keys_keep_variants_of_the_keys() -> None:
    forward = "return torch.softmax(a0 @ a1.transpose(-1, -2) * 0.125 + a3, -1) @ a2"
    parts = ["torch.randn(b, 4, q, 64)", *["torch.randn(b, 4, k, 64)"] * 2, "torch.randn(b, 4, q, k)"]
    halves = ", ".join(f"{part}.bfloat16()" for part in parts)
    source = problem(forward, halves, sizes="b=2, q=16, k=128")
    sizes = [{"name": "a", "b": 2, "q": 16, "k": 128}, {"name": "b", "b": 3, "q": 24, "k": 256}]
    first = next(d for d in drafts(source, sizes) if "def attend_" in d.source)
    assert "span" not in free(first.source)[0]
    assert free(first.source)[0]


def test_screening_dispatch_and_the_names_of_kernels_take_the_decorator() -> None:
    source, workloads = example("softmax_scale_mask")
    text = drafts(source, workloads)[0].source
    assert gpu_kernels(text) == {"fused_out_held"}
    screen(read_problem(source, "softmax"), Candidate(source=text, language=Language.TRITON))
    statements = prefixed(text, "first_").statements
    assert statements


@pytest.mark.compiles
def test_memory_is_read_and_written_alike(tmp_path: Path) -> None:
    from tests.synthesis.test_triton import case, compiled

    cases = {}
    for name in ("softmax_scale_mask", "rope", "decode_attention"):
        source, workloads = example(name)
        made = drafts(source, workloads[:3])[0]
        plain = replace(made, source=re.sub(r"@triton\.jit\(.*\)", "@triton.jit", made.source))
        assert plain.source != made.source
        sizes = [{k: v for k, v in w.items() if k != "name"} for w in workloads[:2]]
        for key, draft in (("free", made), ("plain", plain)):
            cases[f"{name} {key}"] = case(tmp_path, f"{name}_{key}", source, [draft], sizes)
    found = {name: [launch["accesses"] for launch in launches] for name, launches in compiled(cases, tmp_path).items()}
    for name in ("softmax_scale_mask", "rope", "decode_attention"):
        assert found[f"{name} free"] == found[f"{name} plain"]
        assert any("v4" in kind or "16" in kind for counts in found[f"{name} free"] for kind in counts)
