"""The techniques that tell cuTile kernels apart, and the words that reveal them."""

from __future__ import annotations

from evaluator.languages.niche import NicheRules, rules

NICHES = NicheRules(
    memory=rules(
        ("gather", r"ct\.(?:gather|scatter)\b"),
        ("no-tma", r"allow_tma\s*=\s*False"),
        ("hinted", r"latency\s*="),
    ),
    compute=rules(
        ("tensor-core", r"ct\.(?:mma|mma_scaled|matmul)\b"),
        ("online", r"(?i)online|running_max|m_new|m_i\b"),
        ("reduce", r"ct\.(?:sum|max|min|prod|reduce|scan|cumsum)\b"),
    ),
    parallel=rules(
        ("split", r"ct\.atomic_"),
        ("persistent", r"ct\.num_blocks"),
        ("cluster", r"num_ctas\s*="),
    ),
)
