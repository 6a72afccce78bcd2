"""Technique notes for Triton."""

from __future__ import annotations

from evaluator.languages.notes import GPU_LATENCY, Note, Topic

NOTES = (
    Note(
        Topic.EXP,
        "exp2 of (x - maximum) * (scale * log2(e)) saves a multiply an element; subtract first: products that are "
        "folded into x and the maximum apart are contracted to FMAs, and differ where logits are large.",
    ),
    Note(
        Topic.REDUCTION,
        "a row that fits a block is read once and kept in registers; longer ones go online (running maximum and sum); "
        "few rows: split each over several programs and combine.",
    ),
    Note(
        Topic.MATMUL,
        "tl.dot on 64- to 256-wide tiles, num_stages 3 to 5, grouped program order for L2; few tiles: split-K or "
        "a persistent loop over tiles; on sm_90 use tensor descriptors.",
    ),
    Note(
        Topic.SKINNY,
        "few rows: the weights' bytes are all that counts. M padded to 16, BN 16 to 64, BK 256 to 512, split-K or "
        "narrow tiles until every multiprocessor has a program, 30 KB of loads in flight each; several products of one "
        "input in one kernel; a single row needs no tl.dot: x in registers, whole rows of the weight, float32 sums.",
    ),
    Note(
        Topic.SKINNY,
        "partial results of split-K: the last program to arrive (an atomic counter with acq_rel, set back to zero by "
        "it) adds them up in the same kernel, instead of a second one.",
    ),
    Note(
        Topic.ATTENTION,
        "attention: one pass over the keys in blocks of 64 to 128, running maximum and sum in float32, exp2; scores "
        "never reach memory. Heads and queries that share keys are the rows of one tl.dot, 16 at least; probabilities "
        "are cast to the values' type, scores stay float32. A masked score is -inf, and -inf - -inf is NaN: guard rows "
        "that have seen no key yet.",
    ),
    Note(
        Topic.ATTENTION,
        "few queries: split the keys over programs until every multiprocessor has one or two; partial maximum, sum and "
        "accumulator are combined by a small second kernel, or by the last program to arrive (atomic counter with "
        "acq_rel, set back to zero by it).",
    ),
    Note(
        Topic.ALWAYS,
        "tl.max and tl.maximum drop NaN, and so does tl.where(x > 0, x, 0): torch keeps it. In a softmax it comes back "
        "through the sum; elsewhere use propagate_nan=tl.PropagateNan.ALL.",
    ),
    Note(
        Topic.MEMORY,
        "16 bytes a thread and load (tl.multiple_of, tl.max_contiguous), several rows a program for short rows, "
        "eviction_policy='evict_first' for what is read once.",
    ),
    GPU_LATENCY,
)
