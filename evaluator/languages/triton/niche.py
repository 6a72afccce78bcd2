"""The techniques that tell Triton kernels apart, and the words that reveal them."""

from __future__ import annotations

from evaluator.languages.niche import NicheRules, rules

NICHES = NicheRules(
    memory=rules(
        ("descriptor", r"make_tensor_descriptor|TensorDescriptor|_experimental_descriptor"),
        ("block-pointer", r"make_block_ptr"),
        ("hinted", r"eviction_policy|cache_modifier|max_contiguous|multiple_of"),
    ),
    compute=rules(
        ("tensor-core", r"tl\.dot"),
        ("online", r"(?i)online|running_max|m_new|m_i\b"),
        ("reduce", r"tl\.(?:sum|max|min|reduce|associative_scan|cumsum)\b"),
    ),
    parallel=rules(
        ("split", r"tl\.atomic_"),
        ("persistent", r"num_programs"),
        ("row-a-program", r"row\w*\s*=\s*tl\.program_id"),
    ),
)
