"""Write a first draft of attention over a key-value cache, and the edits that an author makes of it one by one.

The draft: a program per query head, the cache read twice (for the peak, then for the sum), no tensor cores, float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

from bench.search.attention import join
from bench.search.lattice import Lattice, launch_arguments, module_header

EDITS = (
    "online", "grouped", "dots", "native", "split", "base-two", "even", "evict", "unrolled", "early-scale", "warps",
    "pipelined", "parts-first", "wide-join", "registers", "narrow",
)  # fmt: skip
NEEDS = {"native": "dots", "parts-first": "split", "wide-join": "split", "narrow": "native"}


def lists(edits: frozenset[str]) -> dict[str, list[int]]:
    """Return the values that an author would list for each Tunable, in full."""
    registers = [16, 32, 8] if "grouped" in edits else [32, 64, 16]
    found = {"BLOCK": [64, 128, 32, 256] if "dots" in edits else registers}
    more = {
        "split": ("SPLIT", [8, 4, 16, 32]), "warps": ("WARPS", [4, 2, 8, 1]), "pipelined": ("STAGES", [3, 2, 4, 1]),
        "wide-join": ("JOIN", [2, 1, 4]), "registers": ("REGISTERS", [128, 168, 255]),
    }  # fmt: skip
    return found | {name: values for edit, (name, values) in more.items() if edit in edits}


def source(edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the module of a design. Its first Configuration is the first value of each list."""
    kernel = _kernel(edits) + (join(_exponential(edits)[0], "wide-join" in edits) if "split" in edits else "")
    module = "class ModelNew(nn.Module):\n    def forward(self, q, k, v):\n" + indent(
        _forward(edits, tunables), " " * 8
    )
    return module_header(LATTICE, edits, tunables) + kernel + module


def _exponential(edits: frozenset[str]) -> tuple[str, str]:
    """Return the exponential, and its factor for scores: 1 / sqrt(64)."""
    return ("tl.exp2", "0.18033688011112042") if "base-two" in edits else ("tl.exp", "0.125")


def _kernel(edits: frozenset[str]) -> str:
    exp, factor = _exponential(edits)
    part, whose = ("0", "1") if "parts-first" in edits else ("1", "0")
    body = f"head = tl.program_id({whose}).to(tl.int64)\nd = tl.arange(0, 64)\ng = tl.arange(0, PADDED)\n"
    if "grouped" in edits:
        body += "cache = head\nmine = head * GROUP + g\nheld = g < GROUP\n"
    else:
        body += "cache = head // GROUP\nmine = head + g\nheld = g < 1\n"
    body += "q = tl.load(q_ptr + mine[:, None] * 64 + d[None, :], mask=held[:, None], other=0)\n"
    body += "" if "native" in edits else "q = q.to(tl.float32)\n"
    body += f"q = (q.to(tl.float32) * {factor}).to(q.dtype)\n" if "early-scale" in edits else ""
    body += 'peak = tl.full([PADDED], float("-inf"), tl.float32)\n'
    first, last = "0", "length"
    if "split" in edits:
        body += "span = tl.cdiv(tl.cdiv(length, SPLIT), BLOCK) * BLOCK\n"
        body += f"first = tl.program_id({part}) * span\nlast = tl.minimum(first + span, length)\n"
        first, last = "first", "last"
    unrolled = ", loop_unroll_factor=2" if "unrolled" in edits else ""
    loop = f"for start in tl.range({first}, {last}, BLOCK{unrolled}):\n"
    start = "total = tl.zeros([PADDED], tl.float32)\ny = tl.zeros([PADDED, 64], tl.float32)\n"
    if "online" in edits:
        step = _scores(edits) + "larger = tl.maximum(peak, tl.max(s, axis=1))\n"
        step += f"p = {exp}(s - larger[:, None])\nshrink = {exp}(peak - larger)\n"
        step += "total = total * shrink + tl.sum(p, axis=1)\npeak = larger\ny = y * shrink[:, None]\n"
        body += start + loop + indent(step + _weighted(edits), "    ")
    else:
        body += loop + indent(_scores(edits) + "peak = tl.maximum(peak, tl.max(s, axis=1))\n", "    ")
        step = _scores(edits) + f"p = {exp}(s - peak[:, None])\ntotal += tl.sum(p, axis=1)\n"
        body += start + loop + indent(step + _weighted(edits), "    ")
    if "split" in edits:
        body += f"place = mine * SPLIT + tl.program_id({part})\n"
        body += "tl.store(peak_ptr + place, peak, mask=held)\ntl.store(total_ptr + place, total, mask=held)\n"
        body += "tl.store(out_ptr + place[:, None] * 64 + d[None, :], y, mask=held[:, None])\n"
    else:
        body += "tl.store(out_ptr + mine[:, None] * 64 + d[None, :], y / total[:, None], mask=held[:, None])\n"
    outs = "peak_ptr, total_ptr, out_ptr" if "split" in edits else "out_ptr"
    constants = ["GROUP", "PADDED", "BLOCK", *(["SPLIT"] if "split" in edits else [])]
    constants += ["EVEN"] if "even" in edits else []
    head = f"@triton.jit\ndef attention(q_ptr, k_ptr, v_ptr, {outs}, length, "
    head += ", ".join(f"{name}: tl.constexpr" for name in constants) + "):\n"
    return head + indent(body, "    ") + "\n\n"


def _load(name: str, at: str, inside: str, edits: frozenset[str]) -> str:
    hint = ', eviction_policy="evict_first"' if "evict" in edits else ""
    mask = f"mask={inside} if not EVEN else None, other=0 if not EVEN else None" if "even" in edits else ""
    mask = mask or f"mask={inside}, other=0"
    wide = "" if "native" in edits else ".to(tl.float32)"
    return f"{name} = tl.load({name}_ptr + cache * length * 64 + {at}, {mask}{hint}){wide}\n"


def _scores(edits: frozenset[str]) -> str:
    """Return the scores `s` of one block of keys."""
    step = "j = start + tl.arange(0, BLOCK)\n"
    step += _load("k", "j[None, :] * 64 + d[:, None]", "j[None, :] < length", edits)
    times = "" if "early-scale" in edits else f" * {_exponential(edits)[1]}"
    product = "tl.dot(q, k)" if "dots" in edits else "tl.sum(q[:, :, None] * k[None, :, :], axis=1)"
    step += f"s = {product}{times}\n"
    where = 's = tl.where(j[None, :] < length, s, float("-inf"))\n'
    return step + (f"if not EVEN:\n    {where}" if "even" in edits else where)


def _weighted(edits: frozenset[str]) -> str:
    """Return the contribution of one block of values to `y`."""
    step = _load("v", "j[:, None] * 64 + d[None, :]", "j[:, None] < length", edits)
    if "dots" not in edits:
        return step + "y += tl.sum(p[:, :, None] * v[None, :, :], axis=1)\n"
    if "narrow" in edits:
        return step + "y = (y + tl.dot(p.to(v.dtype), v)).to(v.dtype).to(tl.float32)\n"
    return step + "y = tl.dot(p.to(v.dtype), v, y)\n"


def _forward(edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    split, grouped = "split" in edits, "grouped" in edits
    text = "q, k, v = q.contiguous(), k.contiguous(), v.contiguous()\nbatch, heads = q.shape[:2]\n"
    text += "caches, length = k.shape[1:3]\ngroup = heads // caches\nout = torch.empty_like(q)\n"
    programs = "batch * caches" if grouped else "batch * heads"
    padded = "16" if "dots" in edits else "triton.next_power_of_2(group)" if grouped else "1"
    constants = f"GROUP=group, PADDED={padded}, "
    if "even" in edits:
        step = 'CONFIG["SPLIT"] * CONFIG["BLOCK"]' if split else 'CONFIG["BLOCK"]'
        constants += f"EVEN=length % ({step}) == 0, "
    constants += launch_arguments(tunables, without=("JOIN",))
    if not split:
        return text + f"attention[({programs},)](q, k, v, out, length, {constants})\nreturn out\n"
    text += 'split = CONFIG["SPLIT"]\n'
    text += "peak = torch.empty((batch * heads, split), dtype=torch.float32, device=q.device)\n"
    text += "total = torch.empty_like(peak)\n"
    text += "parts = torch.empty((batch * heads, split, 64), dtype=torch.float32, device=q.device)\n"
    grid = f"split, {programs}" if "parts-first" in edits else f"{programs}, split"
    text += f"attention[({grid})](q, k, v, peak, total, parts, length, {constants})\n"
    wide = "wide-join" in edits
    programs = 'triton.cdiv(batch * heads, CONFIG["JOIN"])' if wide else "batch * heads"
    more = ', JOIN=CONFIG["JOIN"]' if wide else ""
    call = f"join[({programs},)](peak, total, parts, out, batch * heads, SPLIT=split{more}, num_warps=2)"
    return f"{text}{call}\nreturn out\n"


LATTICE = Lattice(EDITS, NEEDS, clash=(), dead=("narrow",), lists=lists, source=source)
