"""Niches are read from text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.languages import adapter
from evaluator.types import Language


@pytest.mark.parametrize(
    ("source", "language", "niche"),
    [
        ("__shared__ float t[32]; float4 v; atomicAdd(x, 1)", Language.CUDA, "vector+shared/plain/split"),
        (
            "x = tl.dot(a, b)\nfor t in range(pid, n, tl.num_programs(0))",
            Language.TRITON,
            "plain/tensor-core/persistent",
        ),
        (
            "_mm256_add_ps(a, b); _mm_prefetch(p, 1);\n#pragma omp parallel for",
            Language.CPP,
            "prefetch/intrinsics/threads",
        ),
        (
            "config=helion.Config(reduction_loops=[1024], pid_type='persistent_blocked')\ntorch.sum(v, dim=-1)",
            Language.HELION,
            "looped/reduce/persistent",
        ),
        ("acc = ct.mma(a, b, acc); ct.atomic_add(y, at, acc)", Language.CUTILE, "plain/tensor-core/split"),
        ("return torch.nn.functional.rms_norm(x)", Language.TORCH, "plain/fused-op/plain"),
    ],
)
def test_niches(source: str, language: Language, niche: str) -> None:
    assert str(adapter(language).niche(source)) == niche


@given(st.text(max_size=300), st.sampled_from(list(Language)))
def test_any_text_has_a_niche(source: str, language: Language) -> None:
    assert str(adapter(language).niche(source)).count("/") == 2
