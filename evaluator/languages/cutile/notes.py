"""Technique notes for cuTile."""

from __future__ import annotations

from evaluator.languages.notes import GPU_LATENCY, Note, Topic

NOTES = (
    Note(
        Topic.EXP,
        "ct.exp2 of (x - maximum) * (scale * log2(e)), subtract first; flush_to_zero where denormals do not matter.",
    ),
    Note(
        Topic.REDUCTION,
        "a row that fits one tile (a power of two, edges padded with the neutral element) is read once; longer ones in "
        "a loop that accumulates a tile elementwise and reduces it once at the end.",
    ),
    Note(
        Topic.MATMUL,
        "acc = ct.mma(a, b, acc) over 64- to 256-wide tiles, blocks in grouped order for L2 (swizzle the block's "
        "number), num_ctas=2 where tiles are large; few tiles: split k and combine.",
    ),
    Note(
        Topic.SKINNY,
        "few rows: the weights' bytes are all that counts: narrow tiles of columns, long ones of k, k split over "
        "blocks with ct.atomic_add into zeroed float32 until every multiprocessor has a block.",
    ),
    Note(
        Topic.MEMORY,
        "ct.load of whole tiles becomes bulk copies (TMA) where strides are multiples of 16 bytes; several rows a tile "
        "for short rows; occupancy as a Tunable.",
    ),
    GPU_LATENCY,
)
