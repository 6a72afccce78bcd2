"""Technique notes for C++."""

from __future__ import annotations

from evaluator.languages.notes import Note, Topic

NOTES = (
    Note(
        Topic.EXP,
        "libm's expf, tanhf and logf are scalar under these flags, and cost more than the memory traffic: write a "
        "polynomial of your own on vector types (range reduction by ln 2 in two parts, degree 5 or 6, 2^n through the "
        "exponent bits), exact 0 for what underflows, NaN kept.",
    ),
    Note(
        Topic.EXP,
        "AVX-512: vscalefps multiplies by 2^n, overflow and underflow included, without clamps; vrndscaleps or "
        "vreduceps (AVX-512DQ) give the whole part or the fraction in one instruction.",
        flag="avx512f",
    ),
    Note(
        Topic.REDUCTION,
        "without -ffast-math a float reduction does not vectorise: use `__attribute__((vector_size(64)))` types "
        "or intrinsics, with two to eight accumulators, and finish a row's tail by itself.",
    ),
    Note(
        Topic.REDUCTION,
        "keep a row in registers or in L1 between passes; compute again what is cheap, store what is dear (exp).",
    ),
    Note(
        Topic.MATMUL,
        "block for registers first (for AVX-512 6 to 14 rows of 2 to 4 vectors), then for L2; pack the operand that "
        "is read with a stride; or leave the product to the library and fuse what is around it.",
    ),
    Note(
        Topic.SKINNY,
        "few rows: the weights stream from memory once; walk them in their own order, several rows of the weight at a "
        "time, with x in L1 and the sums in registers.",
    ),
    Note(
        Topic.ALWAYS,
        "AVX-512: a mask register finishes a row's tail in the vector loop's own code (masked loads read nothing "
        "beyond).",
        flag="avx512f",
    ),
    Note(
        Topic.MEMORY,
        "close to the floor: non-temporal stores for large outputs that are not read again, prefetch a few cache lines "
        "ahead, and no pass that touches memory twice.",
    ),
)
