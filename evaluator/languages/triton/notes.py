"""Technique notes for Triton."""

from __future__ import annotations

from evaluator.languages.notes import GPU_LATENCY, Note, Topic

NOTES = (
    Note(Topic.EXP, "use exp2 with the scale folded into log2(e); one fewer multiply an element."),
    Note(
        Topic.REDUCTION,
        "a row that fits a block is read once and kept in registers; longer ones go online (running maximum and sum); "
        "few rows: split each over several programs and combine.",
    ),
    Note(
        Topic.MATMUL,
        "tl.dot on 64- to 256-wide tiles, num_stages 3 to 5, grouped program order for L2; few tiles: split-K or "
        "a persistent loop over tiles; on sm_90 use tensor descriptors and warp specialisation.",
    ),
    Note(
        Topic.MEMORY,
        "16 bytes a thread and load (tl.multiple_of, tl.max_contiguous), several rows a program for short rows, "
        "eviction_policy='evict_first' for what is read once.",
    ),
    GPU_LATENCY,
)
