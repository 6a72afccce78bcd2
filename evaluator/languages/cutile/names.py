"""The names of cuTile from which the judge's loop cannot be reached."""

from __future__ import annotations

from evaluator.languages.allowed import AllowedNames

_TILE = (
    "Array ByTarget Constant IndexedWithInt64 MemoryOrder MemoryScope PaddingMode RoundingMode Scalar ScalarInt64 Tile"
    " abs add arange argmax argmin assume_divisible_by astile astype atan2 atomic_add atomic_and atomic_cas atomic_max"
    " atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bid bitcast bitwise_and bitwise_lshift bitwise_not"
    " bitwise_or bitwise_rshift bitwise_xor bool_ broadcast_to cat cdiv ceil cos cosh cumprod cumsum equal exp exp2"
    " expand_dims extract float16 float32 float64 float8_e4m3fn float8_e5m2 floor floordiv full function gather greater"
    " greater_equal insert int16 int32 int64 int8 isnan kernel launch less less_equal load log log2 matmul max maximum"
    " min minimum mma mma_scaled mod mul negative not_equal num_blocks num_tiles ones permute pow prod reduce reshape"
    " rsqrt scan scatter sin sinh sqrt store sub sum tan tanh tfloat32 transpose truediv uint16 uint32 uint64 uint8"
    " where zeros"
)
_MEMBERS = "ZERO NEG_ZERO NAN POS_INF NEG_INF UNDETERMINED RELAXED ACQ_REL DEVICE"

ALLOWED = AllowedNames(
    modules={"cuda.tile": "ct"},
    members={("cuda", "tile"): "ct", ("torch.cuda", "current_stream"): ""},
    attributes={"ct": frozenset(_TILE.split())},
    values=frozenset(_MEMBERS.split()),
)
