"""Technique notes for Helion."""

from __future__ import annotations

from evaluator.languages.notes import GPU_LATENCY, Note, Topic

NOTES = (
    Note(Topic.EXP, "torch.exp2 of (x - maximum) * (scale * log2(e)) saves a multiply an element; subtract first."),
    Note(
        Topic.REDUCTION,
        "x[tile, :] with reduction_loops=[None] keeps a row in registers and reads it once; reduction_loops=[1024] "
        "walks long rows, and reads what is used again twice; few rows: split them over tiles and combine.",
    ),
    Note(
        Topic.MATMUL,
        "an outer hl.tile over [m, n], an inner one over k, acc = torch.addmm(acc, a[m, k], b[k, n]); 64- to 256-wide "
        "blocks, num_stages 3 to 5, l2_groupings=[8 or more], on sm_90 indexing='tensor_descriptor'.",
    ),
    Note(
        Topic.SKINNY,
        "few rows: the weights' bytes are all that counts: tiles of 16 to 64 columns, long ones of k, split k over "
        "programs with hl.atomic_add into zeroed float32 until every multiprocessor has a program.",
    ),
    Note(
        Topic.MEMORY,
        "one block_sizes value a row tile, more rows a program for short rows; pid_type='persistent_blocked' where "
        "there are far more tiles than multiprocessors.",
    ),
    GPU_LATENCY,
)
