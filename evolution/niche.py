"""The Niche of a Candidate: how it treats memory, computes, and spreads its work, read from its text alone.

Words in the source are weak evidence, but they need no device and no compiler, and pages and prompts only need a few
words that tell kernels apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.types import Language


@dataclass(frozen=True, slots=True)
class Niche:
    """What kind of kernel it is; `str` gives "memory/compute/parallelisation"."""

    memory: str
    compute: str
    parallel: str

    def __str__(self) -> str:
        return f"{self.memory}/{self.compute}/{self.parallel}"


_Rules = tuple[tuple[str, re.Pattern[str]], ...]


def _rules(*pairs: tuple[str, str]) -> _Rules:
    return tuple((name, re.compile(pattern)) for name, pattern in pairs)


# The first rule that matches names the strategy; the rarer technique comes first.
_MEMORY: dict[Language, _Rules] = {
    Language.CUDA: _rules(
        ("async", r"cp\.async|memcpy_async|__pipeline|cp\.bulk|tensormap"),
        ("vector+shared", r"(?s)(?=.*__shared__)(?=.*\b(?:float4|int4|uint4|float2|half2|__nv_bfloat162)\b)"),
        ("shared", r"__shared__"),
        ("vector", r"\b(?:float4|int4|uint4|float2|half2|__half2|__nv_bfloat162)\b"),
    ),
    Language.TRITON: _rules(
        ("descriptor", r"make_tensor_descriptor|TensorDescriptor|_experimental_descriptor"),
        ("block-pointer", r"make_block_ptr"),
        ("hinted", r"eviction_policy|cache_modifier|max_contiguous|multiple_of"),
    ),
    Language.CPP: _rules(
        ("streaming", r"_mm\d*_stream|nontemporal"),
        ("prefetch", r"__builtin_prefetch|_mm_prefetch"),
        ("blocked", r"(?i)\b(?:tile|block)(?:_?size|_?[mnk])?\b"),
    ),
    Language.TORCH: _rules(("in-place", r"\w_\(|out=")),
}
_COMPUTE: dict[Language, _Rules] = {
    Language.CUDA: _rules(
        ("tensor-core", r"wmma|mma\.sync|wgmma|mma_sync|tcgen05"),
        ("online", r"(?i)online|running_max|m_new|old_max|new_max"),
        ("warp-reduce", r"__shfl|__reduce_"),
    ),
    Language.TRITON: _rules(
        ("tensor-core", r"tl\.dot"),
        ("online", r"(?i)online|running_max|m_new|m_i\b"),
        ("reduce", r"tl\.(?:sum|max|min|reduce|associative_scan|cumsum)\b"),
    ),
    Language.CPP: _rules(
        ("intrinsics", r"_mm\d*_|vector_size|\bv(?:ld|st)1q?_"),
        ("online", r"(?i)online|running_max|m_new|new_max"),
        ("simd", r"omp\s+simd|GCC ivdep|__restrict"),
    ),
    Language.TORCH: _rules(
        ("matmul", r"matmul|linear|addmm|bmm|einsum|@"), ("fused-op", r"scaled_dot|rms_norm|layer_norm")
    ),
}
_PARALLEL: dict[Language, _Rules] = {
    Language.CUDA: _rules(
        ("cooperative", r"grid\.sync|cooperative_groups|cluster"),
        ("split", r"atomic(?:Add|Max|Min|CAS)"),
        ("persistent", r"\+=\s*(?:\w+\s*\*\s*)?gridDim|gridDim\.x\s*\*\s*blockDim\.x"),
        ("row-a-block", r"row\s*=\s*blockIdx"),
    ),
    Language.TRITON: _rules(
        ("split", r"tl\.atomic_"),
        ("persistent", r"num_programs"),
        ("row-a-program", r"row\w*\s*=\s*tl\.program_id"),
    ),
    Language.CPP: _rules(
        ("threads", r"omp\s+parallel|std::thread|pthread"),
    ),
    Language.TORCH: _rules(("compiled", r"torch\.compile")),
}


def niche_of(source: str, language: Language) -> Niche:
    """The Niche of a source; "plain" where no technique is named."""
    return Niche(*(_first(table[language], source) for table in (_MEMORY, _COMPUTE, _PARALLEL)))


def _first(rules: _Rules, source: str) -> str:
    return next((name for name, pattern in rules if pattern.search(source)), "plain")
