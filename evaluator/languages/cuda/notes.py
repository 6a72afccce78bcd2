"""Technique notes for CUDA C++."""

from __future__ import annotations

from evaluator.languages.notes import GPU_LATENCY, Note, Topic

NOTES = (
    Note(
        Topic.EXP,
        "exp2f of (x - maximum) * (scale * log2(e)), or ex2.approx where the accuracy rule allows; subtract first.",
    ),
    Note(
        Topic.REDUCTION,
        "a warp a row with __shfl_xor_sync for rows up to a few thousand elements, a block with shared memory beyond.",
    ),
    Note(
        Topic.MATMUL,
        "tensor cores through mma.sync (wgmma with TMA on sm_90), operands staged by cp.async or bulk copies in three "
        "or more stages, swizzled shared memory, split-K for few output tiles.",
    ),
    Note(
        Topic.SKINNY,
        "few rows: the weights' bytes are all that counts. A warp or two an output column block, 16-byte loads of the "
        "weight straight to registers, first ones requested before anything waits; split-K until every multiprocessor "
        "is busy, partial sums combined by the last block to arrive (atomic counter, set back to zero by it).",
    ),
    Note(
        Topic.ATTENTION,
        "attention: one pass over the keys, running maximum and sum in float32, exp2f; scores never reach memory. Few "
        "queries: split the keys over blocks until every multiprocessor is busy, and let the last block to arrive "
        "combine the partial results (atomic counter, set back to zero by it). Guard rows that have seen no key yet.",
    ),
    Note(Topic.ALWAYS, "fmaxf and fminf drop NaN where torch keeps it: test for it where no sum brings it back."),
    Note(
        Topic.MEMORY,
        "float4 loads and stores, four or more in flight a thread, __ldcs/__stcs for what is touched once, a grid of "
        "some waves of the device's multiprocessors.",
    ),
    GPU_LATENCY,
)
