"""The names of Helion, and of PyTorch inside its kernels, from which the judge's loop cannot be reached."""

from __future__ import annotations

from evaluator.languages.allowed import AllowedNames

# Functions of tensors alone, which Helion compiles.
_TORCH = (
    "abs add addmm amax amin argmax argmin baddbmm bmm ceil clamp cos cumprod cumsum div erf exp exp2 expm1 flip floor"
    " fmod gather isinf isnan log log1p log2 logical_and logical_not logical_or matmul maximum mean minimum mm mul neg"
    " pow prod reciprocal relu remainder round rsqrt sigmoid sign sin softmax split sqrt square stack sub sum tan tanh"
    " tril triu trunc unsqueeze var where"
)
_LANGUAGE = (
    "Tile arange associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg"
    " atomic_xor barrier constexpr cumprod cumsum dot dot_scaled full grid jagged_tile join load reduce"
    " register_block_size specialize split static_range store subscript tile tile_begin tile_block_size tile_end"
    " tile_id tile_index zeros"
)

ALLOWED = AllowedNames(
    modules={"helion": "helion", "helion.language": "hl"},
    members={("helion", "language"): "hl", ("helion", "kernel"): "", ("helion", "Config"): ""},
    attributes={
        "helion": frozenset(("kernel", "jit", "Config", "cdiv", "next_power_of_2")),
        "hl": frozenset(_LANGUAGE.split()),
        "torch": frozenset(_TORCH.split()),
    },
    values=frozenset(("begin", "end", "block_size", "count", "id")),  # of a tile
)
