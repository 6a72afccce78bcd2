"""The techniques that tell CUDA C++ kernels apart, and the words that reveal them."""

from __future__ import annotations

from evaluator.languages.niche import NicheRules, rules

NICHES = NicheRules(
    memory=rules(
        ("async", r"cp\.async|memcpy_async|__pipeline|cp\.bulk|tensormap"),
        ("vector+shared", r"(?s)(?=.*__shared__)(?=.*\b(?:float4|int4|uint4|float2|half2|__nv_bfloat162)\b)"),
        ("shared", r"__shared__"),
        ("vector", r"\b(?:float4|int4|uint4|float2|half2|__half2|__nv_bfloat162)\b"),
    ),
    compute=rules(
        ("tensor-core", r"wmma|mma\.sync|wgmma|mma_sync|tcgen05"),
        ("online", r"(?i)online|running_max|m_new|old_max|new_max"),
        ("warp-reduce", r"__shfl|__reduce_"),
    ),
    parallel=rules(
        ("cooperative", r"grid\.sync|cooperative_groups|cluster"),
        ("split", r"atomic(?:Add|Max|Min|CAS)"),
        ("persistent", r"\+=\s*(?:\w+\s*\*\s*)?gridDim|gridDim\.x\s*\*\s*blockDim\.x"),
        ("row-a-block", r"row\s*=\s*blockIdx"),
    ),
)
