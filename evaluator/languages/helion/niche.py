"""The techniques that tell Helion kernels apart, and the words that reveal them."""

from __future__ import annotations

from evaluator.languages.niche import NicheRules, rules

NICHES = NicheRules(
    memory=rules(
        ("descriptor", r"tensor_descriptor"),
        ("block-pointer", r"block_ptr"),
        ("hinted", r"load_eviction_policies"),
        ("looped", r"reduction_loops=\[\s*(?!None)"),
    ),
    compute=rules(
        ("tensor-core", r"hl\.dot|torch\.(?:addmm|matmul|mm|bmm|baddbmm)\b"),
        ("online", r"(?i)online|running_max|m_new|m_i\b"),
        ("reduce", r"(?:torch|hl)\.(?:sum|mean|amax|amin|prod|var|softmax|cumsum|reduce|associative_scan)\b"),
    ),
    parallel=rules(
        ("split", r"hl\.atomic_"),
        ("persistent", r"persistent_(?:blocked|interleaved)"),
        ("grid", r"hl\.grid"),
    ),
)
