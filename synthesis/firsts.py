"""The Configurations that strategies begin with, those that were fastest in most benchmarks first."""

from __future__ import annotations

from synthesis.tuning import Configuration

CPU_FIRSTS: tuple[Configuration, ...] = (
    {},
    {"KEEP_IN_OUTPUT": 1},
    {"VECTOR": 16},
    {"VECTOR": 8},
    {"VECTOR": 16, "UNROLL": 2},
    {"UNROLL": 2},
    {"VECTOR": 16, "STREAM_STORES": 1},
    {"VECTOR": 16, "STRIP": 512},
    {"VECTOR": 16, "STREAM_STORES": 1, "TILE": 16},
    {"STREAM_STORES": 1},
    {"PREFETCH": 2048},
)

# Those that a source has no Tunables for are left out, so the first ones of each block lead. VECTOR 0, a tensor core
# for one row, comes late: it was the slowest in looks on an H100 and an H200.
BLOCK_FIRSTS: tuple[Configuration, ...] = (
    {},
    {"PROGRAMS": 132, "KEYS": 64, "QUERIES": 64, "ATTEND_WARPS": 8, "ATTEND_STAGES": 2},
    {"PROGRAMS": 264, "KEYS": 128, "ATTEND_STAGES": 2},
    {"SEARCH_WARPS": 4},
    {"SEARCH_COLUMNS": 256},
    {"SEARCH_UNROLL": 8},
    {"TILE_DEPTH": 64},
    {"TILE_COLUMNS": 64, "TILE_WARPS": 4},
    {"TILE_COLUMNS": 64, "TILE_WARPS": 4, "TILE_DEPTH": 16, "TILE_STAGES": 4},
    {"DEPTH": 128, "PRODUCT_STAGES": 5},
    {"UNROLL": 1, "PRODUCT_STAGES": 4},
    {"UNROLL": 2, "PRODUCT_STAGES": 4},
    {"PROGRAMS": 132, "KEYS": 32, "QUERIES": 32, "ATTEND_WARPS": 4},
    {"COLUMNS": 32, "DEPTH": 256, "PRODUCT_WARPS": 2},
    {"PROGRAMS": 264, "KEYS": 64, "ATTEND_WARPS": 8, "ATTEND_STAGES": 3},
    {"LANES": 8, "VECTOR_DEPTH": 1024, "VECTOR_STAGES": 3},
    {"COLUMNS": 32, "DEPTH": 512, "PRODUCT_STAGES": 3},
    {"COLUMNS": 32, "UNROLL": 4, "PRODUCT_WARPS": 2, "PRODUCT_STAGES": 4},
    {"COLUMNS": 32, "DEPTH": 128, "PRODUCT_WARPS": 2, "PRODUCT_STAGES": 6},
    {"SLICE": 8192},
    {"SLICE_WARPS": 4},
    {"TILE_DEPTH": 64, "TILE_STAGES": 2},
    {"TILE_ROWS": 64, "TILE_WARPS": 4},
    {"TILE_DEPTH": 16, "TILE_STAGES": 4},
    {"TILE_COLUMNS": 64},
    {"TILE_ROWS": 256, "TILE_COLUMNS": 64},
    {"HELD_GROUP": 65536},
    {"HELD_GROUP": 0},
    {"HELD_GROUP": 0, "CHANNEL_BLOCK": 2048, "CHANNEL_WARPS": 8},
    {"PROGRAMS": 132, "KEYS": 64, "ATTEND_STAGES": 4},
    {"BESIDE": 0},
    {"PROGRAMS": 396, "KEYS": 64},
    {"COLUMNS": 128, "DEPTH": 128, "PRODUCT_WARPS": 8},
    {"COLUMNS": 32, "PRODUCT_STAGES": 5, "VECTOR": 0},
)

COLUMN_FIRSTS: tuple[Configuration, ...] = (
    {},
    {"STRIP": 256},
    {"COLUMN_TILE": 4096},
    {"COLUMN_ELEMENTS": 16},
    {"STRIP_UNROLL": 8},
    {"STRIP": 64},
    {"STRIP_WARPS": 4},
    {"STRIP_UNROLL": 32},
    {"COLUMN_TILE": 16384},
    {"MAX_COLUMN": 256},
)
