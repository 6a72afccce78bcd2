"""The techniques that tell C++ kernels apart, and the words that reveal them."""

from __future__ import annotations

from evaluator.languages.niche import NicheRules, rules

NICHES = NicheRules(
    memory=rules(
        ("streaming", r"_mm\d*_stream|nontemporal"),
        ("prefetch", r"__builtin_prefetch|_mm_prefetch"),
        ("blocked", r"(?i)\b(?:tile|block)(?:_?size|_?[mnk])?\b"),
    ),
    compute=rules(
        ("intrinsics", r"_mm\d*_|vector_size|\bv(?:ld|st)1q?_"),
        ("online", r"(?i)online|running_max|m_new|new_max"),
        ("simd", r"omp\s+simd|GCC ivdep|__restrict"),
    ),
    parallel=rules(("threads", r"omp\s+parallel|std::thread|pthread")),
)
