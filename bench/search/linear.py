"""Write Triton kernels for products of a few or many rows with a matrix, fused with other operations.

A design is a base (the layout of the work) and edits of it (an author's next attempts); its source is composed here.
Only the device can tell the worth of an edit, and if it works.
"""

from __future__ import annotations

from dataclasses import dataclass

BASES = ("tiles", "tiles transposed", "split", "split transposed", "vector", "library")
EDITS = (
    "columns-first", "swizzled", "persistent", "wrapped", "even", "descriptors", "evict-weights", "keep-rows",
    "registers", "unrolled", "quick", "ahead", "atomic", "narrow", "wide",
)  # fmt: skip
DEAD_ENDS = ("narrow", "wide")


@dataclass(frozen=True)
class Kind:
    """The operation that a product is fused with. `pointers` are the kernel's further arguments, `tensors` their
    values.

    `finish` are the lines that make `y` of `total` (and `second`), with {I}, {J} for the elements' row and column.
    """

    init: str
    build: str
    weight: str
    pointers: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    finish: str = "y = total"
    second: str = ""
    normed: bool = False
    integers: bool = False


KINDS = {
    "linear_gelu": Kind(
        init='hidden, inner, dtype="float32"',
        build="self.linear = nn.Linear(hidden, inner, dtype=getattr(torch, dtype))\n",
        weight="self.linear.weight",
        pointers=("bias_ptr",),
        tensors=("self.linear.bias",),
        finish=(
            "h = total + tl.load(bias_ptr + {J}, mask={J} < n, other=0.0).to(tl.float32)\n"
            "z = 1.5957691216057308 * (h + 0.044715 * h * h * h)\n"
            "y = h * (SIGMOID(z))\n"
        ),
    ),
    "gated_linear": Kind(
        init='hidden, inner, dtype="float32"',
        build=(
            "self.gate = nn.Linear(hidden, inner, bias=False, dtype=getattr(torch, dtype))\n"
            "self.up = nn.Linear(hidden, inner, bias=False, dtype=getattr(torch, dtype))\n"
        ),
        weight="self.gate.weight",
        second="self.up.weight",
        finish="z = total\ny = z * (SIGMOID(z)) * second\n",
    ),
    "rmsnorm_linear": Kind(
        init='hidden, out, dtype="float32", eps=1e-6',
        build=(
            "self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))\n"
            "self.linear = nn.Linear(hidden, out, bias=False, dtype=getattr(torch, dtype))\n"
        ),
        weight="self.linear.weight",
        pointers=("gamma_ptr",),
        tensors=("self.weight",),
        finish="y = total * scale\n",
        normed=True,
    ),
    "int8_linear": Kind(
        init='hidden, inner, dtype="float32"',
        build=(
            'self.register_buffer("weight", torch.zeros(inner, hidden, dtype=torch.int8))\n'
            "self.scale = nn.Parameter(torch.ones(inner, dtype=getattr(torch, dtype)))\n"
        ),
        weight="self.weight",
        pointers=("scale_ptr",),
        tensors=("self.scale",),
        finish="y = total * tl.load(scale_ptr + {J}, mask={J} < n, other=0.0).to(tl.float32)\n",
        integers=True,
    ),
}


def applies(kind: Kind, base: str, edits: frozenset[str]) -> bool:
    """Return true if an author would write this: no edit is useless on the base, or excludes another."""
    tiled, split = base.startswith(("tiles", "split")), base.startswith("split")
    if base == "library":
        return not (kind.normed or edits - {"quick", "registers"})
    if base == "vector":
        return edits <= {"even", "evict-weights", "keep-rows", "registers", "unrolled", "quick", "wide"} and not (
            kind.normed or "wide" in edits
        )
    clash = ({"columns-first", "swizzled"}, {"wrapped", "descriptors"}, {"narrow", "wide"}, {"persistent", "atomic"})
    if any(two <= edits for two in clash):
        return False
    if "quick" in edits and "SIGMOID" not in kind.finish:
        return False
    if "ahead" in edits and (split or not kind.normed):
        return False
    return tiled and (split or "atomic" not in edits) and not (split and "persistent" in edits)


def lists(kind: Kind, workload: str, base: str, edits: frozenset[str]) -> dict[str, list[int]]:
    """Return the values that an author would list for each Tunable, in full."""
    if base == "library":
        return {"BLOCK": [1024, 512, 2048, 4096], "WARPS": [4, 8, 2]} | _registers(edits)
    if base == "vector":
        return {"BN": [4, 2, 8, 16], "BK": [512, 1024, 256, 2048], "WARPS": [4, 2, 8]} | _registers(edits)
    if workload == "prefill":
        wide = [128, 64, 32] if kind.second else [128, 256, 64]  # two sums of 128 by 256 would leave no registers
        found = {"BM": [128, 64, 32], "BN": wide, "BK": [64, 32, 128], "WARPS": [8, 4], "STAGES": [3, 4, 2, 5]}
    else:
        found = {"BM": [16], "BN": [64, 32, 128, 16], "BK": [128, 64, 256, 512], "WARPS": [4, 2, 8],
                 "STAGES": [4, 3, 5, 2]}  # fmt: skip
    if "transposed" in base and workload != "prefill":
        found["BN"] = [64, 128, 256]
    if base.startswith("split"):
        found["SPLIT"] = [2, 4] if workload == "prefill" else [4, 2, 8, 16]
    if "swizzled" in edits:
        found["GROUP"] = [8, 4, 16]
    if "persistent" in edits:
        found["WAVES"] = [1, 2, 4]
    return found | _registers(edits)


def _registers(edits: frozenset[str]) -> dict[str, list[int]]:
    return {"REGISTERS": [128, 168, 255]} if "registers" in edits else {}
