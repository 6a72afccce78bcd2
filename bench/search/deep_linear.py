"""Write first drafts of a few rows times a matrix, and the edits that an author makes of them one by one.

The draft: a program per row and a few outputs, sums over registers. With "tiles" all rows share each read of the
matrix, through tensor cores but in float32 ("native": in the operands' own type).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from bench.search import linear, linear_source
from bench.search.lattice import Lattice, module_header

TILED = ("native", "transposed", "split", "ahead", "persistent", "wrapped", "descriptors", "pipelined")
NEEDS = {**dict.fromkeys(TILED, "tiles"), "atomic": "split", "narrow": "native"}
CLASH = ({"split", "persistent"}, {"split", "ahead"}, {"wrapped", "descriptors"})
_COMMON = (
    "tiles", "native", "transposed", "split", "atomic", "even", "evict-weights", "keep-rows", "registers", "unrolled",
    "warps", "pipelined", "persistent", "wrapped", "descriptors", "narrow",
)  # fmt: skip


def edits_of(kind: linear.Kind) -> tuple[str, ...]:
    """Return the edits that make sense for a kind of product."""
    more = {"quick": "SIGMOID" in kind.finish, "ahead": kind.normed, "magic": kind.integers}
    return (*_COMMON, *(name for name, on in more.items() if on))


def base_of(edits: frozenset[str]) -> str:
    """Return the name of the layout in `bench.search.linear_source`."""
    if "tiles" not in edits:
        return "vector"
    return ("split" if "split" in edits else "tiles") + (" transposed" if "transposed" in edits else "")


def lists(kind: linear.Kind, edits: frozenset[str]) -> dict[str, list[int]]:
    """Return the values that an author would list for each Tunable, in full."""
    found = linear.lists(kind, "decode", base_of(edits), edits)
    if "tiles" not in edits:
        found |= {"BN": [4, 2, 8], "BK": [512, 1024, 256]}
    elif "transposed" in edits:
        found |= {"BN": [64, 128], "BK": [128, 64, 256]}
    if "tiles" in edits and (
        "native" not in edits or kind.second
    ):  # more would leave no registers, and compile for a minute
        found |= {"BN": [64] if "transposed" in edits else [64, 32, 16], "BK": [64, 128, 32]}
    elif "unrolled" in edits:
        found["BK"] = [size for size in found["BK"] if size < 512]
    gone = {name for name, edit in (("WARPS", "warps"), ("STAGES", "pipelined")) if edit not in edits}
    return {name: values for name, values in found.items() if name not in gone}


def source(kind: linear.Kind, edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the module of a design. Its first Configuration is the first value of each list."""
    wide = frozenset({"wide"}) if "tiles" in edits and "native" not in edits else frozenset[str]()
    text = linear_source.body(kind, base_of(edits), edits | wide, tuple(tunables))
    return module_header(lattice_of(kind), edits, tunables) + text


def lattice_of(kind: linear.Kind) -> Lattice:
    clash = tuple(frozenset(pair) for pair in CLASH)
    return Lattice(edits_of(kind), NEEDS, clash, ("narrow",), partial(lists, kind), partial(source, kind))
