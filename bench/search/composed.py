"""Compose designs that are not synthesised: products, attention and rows, with rugged landscapes.

A problem is named "linear_gelu-decode": a file of `bench/search/problems` or `examples/problems`, and the one timed
Workload. Bases come first, then a tree: each design is one more edit of an earlier one. Those named "deep.…" grow from
one first draft (`bench.search.lattice`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from bench.search import attention, deep_attention, deep_linear, deep_rows, linear, linear_source
from bench.search.designs import MOST_EDITS, Design
from bench.search.designs import SLIP_EVERY as OFTEN
from bench.search.lattice import shorten_lists
from evaluator.types import Language

PROBLEMS = (
    "linear_gelu-prefill", "linear_gelu-decode", "gated_linear-prefill", "gated_linear-decode",
    "rmsnorm_linear-decode-8", "int8_linear-decode", "decode_attention-b16-2k",
)  # fmt: skip
LATTICES = {
    "decode_attention": deep_attention.LATTICE,
    **{name: deep_linear.lattice_of(kind) for name, kind in linear.KINDS.items()},
    "softmax_scale_mask": deep_rows.lattice_of(deep_rows.SOFTMAX),
    "layernorm": deep_rows.lattice_of(deep_rows.LAYERNORM),
    "cross_entropy": deep_rows.lattice_of(deep_rows.CROSS_ENTROPY),
}
DEEP = "deep."
DEEP_PROBLEMS = tuple(
    DEEP + name
    for name in (
        "decode_attention-b16-2k", "int8_linear-decode", "softmax_scale_mask-prefill", "cross_entropy-llama3-1k",
        "decode_attention-b1-8k", "rmsnorm_linear-decode-8", "gated_linear-decode", "layernorm-gpt-8k",
        "linear_gelu-decode", "softmax_scale_mask-encoder",
    )
)  # fmt: skip
BASE_CONFIGURATIONS, MOST_CONFIGURATIONS = 36, 24
"""A base and an edited design list at most so many: its author picks values out of the usual ones."""
SLIP_EVERY = 40
"""One in so many kernels is a slip: of products, slips often take the device context down, which costs a restart."""
DEEP_SLIPS = 10, 3
"""One of every third deep design: no design has forty Configurations."""
_FOLDERS = (Path(__file__).with_name("problems"), Path(__file__).parents[2] / "examples" / "problems")


def is_deep(problem: str) -> bool:
    return problem.startswith(DEEP)


def is_composed(problem: str) -> bool:
    return is_deep(problem) or problem in PROBLEMS


def slips(problem: str) -> tuple[int, int]:
    """Return (n, m): one in n Configurations of every m-th design is a slip."""
    return DEEP_SLIPS if is_deep(problem) else (SLIP_EVERY if is_composed(problem) else OFTEN, 1)


def reference(problem: str) -> str:
    """Return the source of a problem's reference."""
    name = problem.removeprefix(DEEP).partition("-")[0]
    path = next((folder / f"{name}.py" for folder in _FOLDERS if (folder / f"{name}.py").exists()), None)
    if path is None:
        raise FileNotFoundError(f"there is no problem {name!r} in bench/search/problems or examples/problems")
    return path.read_text(encoding="utf-8")


def designs(problem: str, seed: int, most: int) -> Iterator[Design]:
    """Return bases, then a tree of edits; the same for the same seed."""
    if is_deep(problem):
        yield from LATTICES[problem.removeprefix(DEEP).partition("-")[0]].designs(f"{problem}/{seed}", most)
        return
    rng = random.Random(f"{problem}/{seed}")
    bases, edits, dead = _choices(problem)
    seen: set[tuple[str, frozenset[str]]] = set()
    grown: list[tuple[str, frozenset[str]]] = []
    for base in bases:
        if _applies(problem, base, frozenset()):
            grown.append((base, frozenset()))
            seen.add(grown[-1])
            yield _design(problem, base, frozenset())
    for _ in range(200 * most):
        if len(seen) >= most:
            return
        base, had = rng.choice(grown)
        name = rng.choice(edits)
        wanted = base, had | {name}
        if wanted in seen or not _applies(problem, *wanted):
            continue
        seen.add(wanted)
        if name not in dead and len(wanted[1]) < MOST_EDITS:
            grown.append(wanted)
        yield _design(problem, *wanted)


def _choices(problem: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the bases of a problem, its edits, and the edits that no design builds on."""
    name, _, workload = problem.partition("-")
    if name == attention.PROBLEM:
        return attention.BASES, attention.EDITS, attention.DEAD_ENDS
    bases = tuple(base for base in linear.BASES if not (workload == "prefill" and base == "vector"))
    return bases, linear.EDITS, linear.DEAD_ENDS


def _applies(problem: str, base: str, edits: frozenset[str]) -> bool:
    name = problem.partition("-")[0]
    if name == attention.PROBLEM:
        return attention.applies(base, edits)
    return linear.applies(linear.KINDS[name], base, edits)


def _design(problem: str, base: str, edits: frozenset[str]) -> Design:
    name, _, workload = problem.partition("-")
    rng = random.Random(f"{problem}/{base}/{sorted(edits)}")
    most = MOST_CONFIGURATIONS if edits else BASE_CONFIGURATIONS
    if name == attention.PROBLEM:
        listed = shorten_lists(attention.lists(base, edits), most, rng)
        source = attention.source(base, edits, listed)
    else:
        listed = shorten_lists(linear.lists(linear.KINDS[name], workload, base, edits), most, rng)
        source = linear_source.source(linear.KINDS[name], base, edits, listed)
    return Design(base, tuple(sorted(edits)), source, Language.TRITON)
