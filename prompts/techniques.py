"""What an expert would say about this kernel: notes chosen by what limits it, by its operations and by its language."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from evaluator.types import Language

NEAR_FLOOR = 1.6
"""Within so many times the least possible time, memory is what limits a kernel."""
FAR_FROM_FLOOR = 5.0

_OPERATIONS = {
    "exp": r"softmax|exp\b|sigmoid|silu|gelu|tanh|erf|log_softmax|logsumexp|cross_entropy",
    "reduction": r"softmax|norm|mean|sum\(|amax|var\(|cross_entropy|argm",
    "matmul": r"matmul|nn\.Linear|F\.linear|bmm|einsum|@|conv|attention",
}
_NOTES: Mapping[tuple[Language, str], tuple[str, ...]] = {
    (Language.CPP, "exp"): (
        "libm's expf, tanhf and logf are scalar under these flags, and cost more than the memory traffic: write a "
        "polynomial of your own on vector types (range reduction by ln 2 in two parts, degree 5 or 6, 2^n through the "
        "exponent bits), exact 0 for what underflows, NaN kept.",
    ),
    (Language.CPP, "reduction"): (
        "without -ffast-math a float reduction does not vectorise: use `__attribute__((vector_size(64)))` types "
        "or intrinsics, with two to eight accumulators, and finish a row's tail by itself.",
        "keep a row in registers or in L1 between passes; compute again what is cheap, store what is dear (exp).",
    ),
    (Language.CPP, "matmul"): (
        "block for registers first (for AVX-512 6 to 14 rows of 2 to 4 vectors), then for L2; pack the operand that "
        "is read with a stride; or leave the product to the library and fuse what is around it.",
    ),
    (Language.CPP, "memory"): (
        "close to the floor: non-temporal stores for large outputs that are not read again, prefetch a few cache lines "
        "ahead, and no pass that touches memory twice.",
    ),
    (Language.TRITON, "exp"): ("use exp2 with the scale folded into log2(e); one fewer multiply an element.",),
    (Language.TRITON, "reduction"): (
        "a row that fits a block is read once and kept in registers; longer ones go online (running maximum and sum); "
        "few rows: split each over several programs and combine.",
    ),
    (Language.TRITON, "matmul"): (
        "tl.dot on 64- to 256-wide tiles, num_stages 3 to 5, grouped program order for L2; few tiles: split-K or "
        "a persistent loop over tiles; on sm_90 use tensor descriptors and warp specialisation.",
    ),
    (Language.TRITON, "memory"): (
        "16 bytes a thread and load (tl.multiple_of, tl.max_contiguous), several rows a program for short rows, "
        "eviction_policy='evict_first' for what is read once.",
    ),
    (Language.CUDA, "exp"): ("use exp2f, or ex2.approx where the accuracy rule allows; fold scales into log2(e).",),
    (Language.CUDA, "reduction"): (
        "a warp a row with __shfl_xor_sync for rows up to a few thousand elements, a block with shared memory beyond.",
    ),
    (Language.CUDA, "matmul"): (
        "tensor cores through mma.sync (wgmma with TMA on sm_90), operands staged by cp.async or bulk copies in three "
        "or more stages, swizzled shared memory, split-K for few output tiles.",
    ),
    (Language.CUDA, "memory"): (
        "float4 loads and stores, four or more in flight a thread, __ldcs/__stcs for what is touched once, a grid of "
        "some waves of the device's multiprocessors.",
    ),
}
_AVX512_EXP = (
    "AVX-512: vscalefps multiplies by 2^n, overflow and underflow included, without clamps; vrndscaleps or vreduceps "
    "(AVX-512DQ) give the whole part or the fraction in one instruction."
)
_AVX512 = (
    "AVX-512: a mask register finishes a row's tail in the vector loop's own code (masked loads read nothing beyond)."
)
_DISTURBED = (
    "other work disturbed the session in which the parent was timed: its times say little of what limits it. Judge by "
    "its ratios, by the other answers, and by counting its instructions and bytes."
)
_GPU_LATENCY = (
    "far from the floor at a small size it is launches and latency that cost: one kernel, few dependent steps, enough "
    "programs to fill the device (split the reduction where rows are few)."
)
ANGLES = (
    "what is read or written more than once",
    "the arithmetic an element, and whether it really runs on full vectors",
    "the chains of operations that wait for each other",
    "work that can be skipped or shared for these inputs",
    "what a call costs besides the work itself: Python, allocation, launches, the first touch of its outputs",
)


def angle(number: int, over: Mapping[str, float] | None = None) -> str:
    """What a prompt asks to look at first; prompts in flight together get different ones.

    `over`: how many times its least possible time the parent takes on each Workload. Where one of several is far
    behind, it takes the place of the last angle.
    """
    index = number % len(ANGLES)
    if over and len(over) > 1 and index == len(ANGLES) - 1:
        name = max(over, key=lambda one: over[one])
        return f"{name}, which is the furthest from its least possible time ({over[name]:.1f} times)"
    return ANGLES[index]


def techniques(
    language: Language,
    reference: str,
    over: Mapping[str, float],
    *,
    own: bool = True,
    disturbed: bool = False,
    flags: Collection[str] = (),
) -> list[str]:
    """Notes for a kernel. `over`: how many times its least possible time each Workload takes, the parent's (`own`) or
    else the fastest Baseline's; `disturbed`: by other work too. `flags`: a CPU's vector instructions."""
    lines = [_DISTURBED] if disturbed else _positions(over) if own else _to_gain(over)
    for name, pattern in _OPERATIONS.items():
        if re.search(pattern, reference):
            lines += _NOTES.get((language, name), ())
            if (language, name) == (Language.CPP, "exp") and "avx512f" in flags:
                lines.append(_AVX512_EXP)
    if language is Language.CPP and "avx512f" in flags:
        lines.append(_AVX512)
    # A Baseline of several passes says nothing about what will limit one fused kernel.
    if not over or not own or min(over.values()) < FAR_FROM_FLOOR:
        lines += _NOTES.get((language, "memory"), ())
    if language in (Language.TRITON, Language.CUDA) and over and max(over.values()) >= FAR_FROM_FLOOR:
        lines.append(_GPU_LATENCY)
    return lines


def _positions(over: Mapping[str, float]) -> list[str]:
    """Where a parent stands, one line for each Workload, the furthest from its floor first."""
    return [_position(name, over[name]) for name in sorted(over, key=lambda one: -over[one])]


def _position(name: str, over_floor: float) -> str:
    times = f"{name}: the parent takes {over_floor:.1f} times the least possible time"
    if over_floor < NEAR_FLOOR:
        return f"{times}: memory traffic is what limits it, and little is left but to touch fewer bytes."
    if over_floor < FAR_FROM_FLOOR:
        return f"{times}: memory traffic, arithmetic and fixed costs may all count."
    return f"{times}: it is not memory that limits it, but arithmetic, latency or fixed costs."


def _to_gain(over: Mapping[str, float]) -> list[str]:
    if not over:
        return []
    gains = ", ".join(f"{times:.1f} times on {name}" for name, times in over.items())
    return [
        f"the fastest baseline takes {gains} the least possible time, a plain copy's of memory that was touched "
        "before: there is so much to gain at the most. It says nothing about what will limit one fused kernel."
    ]
