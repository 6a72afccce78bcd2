"""Write Triton kernels for attention of one new token over a key-value cache.

As in `bench.search.linear`: a base and edits of it, composed to a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

from bench.search.linear_source import HEAD

PROBLEM = "decode_attention"
BASES = ("groups split", "heads split", "groups", "groups split, sums")
EDITS = (
    "base-two", "even", "parts-first", "registers", "unrolled", "evict", "early-scale", "wide-join", "narrow", "wide",
)  # fmt: skip
DEAD_ENDS = ("narrow", "wide")


def applies(base: str, edits: frozenset[str]) -> bool:
    """Return true if an author would write this."""
    if base == "groups" and edits & {"parts-first", "wide-join"}:
        return False
    return not ({"narrow", "wide"} <= edits or (base == "groups split, sums" and edits & {"wide", "narrow"}))


def lists(base: str, edits: frozenset[str]) -> dict[str, list[int]]:
    """Return the values that an author would list for each Tunable, in full."""
    found = {"BLOCK": [64, 128, 32, 256], "WARPS": [4, 2, 8, 1], "STAGES": [3, 2, 1, 4]}
    found |= {} if base == "groups" else {"SPLIT": [8, 4, 16, 32, 2]}
    if "sums" in base:
        found["BLOCK"] = [16, 32, 64, 128]
    if "wide-join" in edits:
        found["JOIN"] = [2, 1, 4]
    return found | ({"REGISTERS": [128, 168, 255]} if "registers" in edits else {})


def source(base: str, edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the module of a design. Its first Configuration is the first value of each list."""
    config = {name: values[0] for name, values in tunables.items()}
    about = f"# {base}" + "".join(f", {edit}" for edit in EDITS if edit in edits)
    return f"{about}\n{HEAD}\nTUNABLES = {dict(tunables)!r}\nCONFIG = {config!r}\n\n\n" + _decode(base, edits)


def _exp(edits: frozenset[str]) -> tuple[str, str]:
    """Return the exponential, and its factor for scores: 1 / sqrt(64)."""
    return ("tl.exp2", "0.18033688011112042") if "base-two" in edits else ("tl.exp", "0.125")


def _options(edits: frozenset[str], names: tuple[str, ...]) -> str:
    found = [f'{name}=CONFIG["{name}"]' for name in names]
    found += ['num_warps=CONFIG["WARPS"]', 'num_stages=CONFIG["STAGES"]']
    return ", ".join(found + (['maxnreg=CONFIG["REGISTERS"]'] if "registers" in edits else []))


def _module(forward: str) -> str:
    return "class ModelNew(nn.Module):\n    def forward(self, q, k, v):\n" + indent(forward, "        ")


def _decode(base: str, edits: frozenset[str]) -> str:
    """Write one program per key-value head (all its queries) or per query head, and per part of the cache."""
    split, grouped, sums = "split" in base, base.startswith("groups"), "sums" in base
    exp, factor = _exp(edits)
    early = "early-scale" in edits
    unrolled = ", loop_unroll_factor=2" if "unrolled" in edits else ""
    hint = ', eviction_policy="evict_first"' if "evict" in edits else ""
    part, whose = ("0", "1") if "parts-first" in edits else ("1", "0")
    body = f"head = tl.program_id({whose}).to(tl.int64)\n"
    body += "cache = head\n" if grouped else "cache = head // GROUP\n"
    body += "d = tl.arange(0, 64)\ng = tl.arange(0, PADDED)\n"
    body += "mine = head * GROUP + g\nheld = g < GROUP\n" if grouped else "mine = head + g\nheld = g < 1\n"
    body += "q = tl.load(q_ptr + mine[:, None] * 64 + d[None, :], mask=held[:, None], other=0)\n"
    body += f"q = (q.to(tl.float32) * {factor}).to(q.dtype)\n" if early else ""
    body += 'peak = tl.full([PADDED], float("-inf"), tl.float32)\ntotal = tl.zeros([PADDED], tl.float32)\n'
    body += "y = tl.zeros([PADDED, 64], tl.float32)\n"
    first, last = "0", "length"
    if split:
        body += "span = tl.cdiv(tl.cdiv(length, SPLIT), BLOCK) * BLOCK\n"
        body += f"first = tl.program_id({part}) * span\nlast = tl.minimum(first + span, length)\n"
        first, last = "first", "last"
    step = "j = start + tl.arange(0, BLOCK)\n"
    inside, more = "j < length", "other=0"
    if "even" in edits:
        inside, more = "{} if not EVEN else None", "other=0 if not EVEN else None"
    for name, at, limit in (
        ("k", "j[None, :] * 64 + d[:, None]", "j[None, :] < length"),
        ("v", "j[:, None] * 64 + d[None, :]", "j[:, None] < length"),
    ):
        mask = inside.format(limit) if "even" in edits else limit
        step += f"{name} = tl.load({name}_ptr + cache * length * 64 + {at}, mask={mask}, {more}{hint})\n"
    times = "" if early else f" * {factor}"
    if sums:
        step += f"s = tl.sum(q.to(tl.float32)[:, :, None] * k.to(tl.float32)[None, :, :], axis=1){times}\n"
    elif "wide" in edits:
        step += f's = tl.dot(q.to(tl.float32), k.to(tl.float32), input_precision="tf32"){times}\n'
    else:
        step += f"s = tl.dot(q, k){times}\n"
    step += 's = tl.where(j[None, :] < length, s, float("-inf"))\n'
    step += f"larger = tl.maximum(peak, tl.max(s, axis=1))\np = {exp}(s - larger[:, None])\n"
    step += f"shrink = {exp}(peak - larger)\ntotal = total * shrink + tl.sum(p, axis=1)\n"
    if sums:
        step += "y = y * shrink[:, None] + tl.sum(p[:, :, None] * v.to(tl.float32)[None, :, :], axis=1)\n"
    elif "narrow" in edits:
        step += "y = (y * shrink[:, None] + tl.dot(p.to(v.dtype), v)).to(v.dtype).to(tl.float32)\n"
    else:
        step += "y = tl.dot(p.to(v.dtype), v, y * shrink[:, None])\n"
    step += "peak = larger\n"
    body += f"for start in tl.range({first}, {last}, BLOCK{unrolled}):\n" + indent(step, "    ")
    if split:
        body += f"place = mine * SPLIT + tl.program_id({part})\n"
        body += "tl.store(peak_ptr + place, peak, mask=held)\ntl.store(total_ptr + place, total, mask=held)\n"
        body += "tl.store(out_ptr + place[:, None] * 64 + d[None, :], y, mask=held[:, None])\n"
    else:
        body += "tl.store(out_ptr + mine[:, None] * 64 + d[None, :], y / total[:, None], mask=held[:, None])\n"
    outs = "peak_ptr, total_ptr, out_ptr" if split else "out_ptr"
    constants = ["GROUP", "PADDED", "BLOCK", *(["SPLIT"] if split else []), *(["EVEN"] if "even" in edits else [])]
    head = f"@triton.jit\ndef attention(q_ptr, k_ptr, v_ptr, {outs}, length, "
    head += ", ".join(f"{name}: tl.constexpr" for name in constants) + "):\n"
    joined = join(exp, "wide-join" in edits) if split else ""
    return head + indent(body, "    ") + "\n\n" + joined + _module(_decode_forward(edits, split, grouped, sums))


def join(exp: str, several: bool) -> str:
    """Write the kernel that joins the parts of each head; several heads per program with JOIN."""
    rows = "tl.program_id(0) * JOIN + tl.arange(0, JOIN)" if several else "tl.program_id(0) + tl.arange(0, 1)"
    body = f"row = {rows}\npart = tl.arange(0, SPLIT)\nd = tl.arange(0, 64)\nheld = row[:, None] < rows\n"
    body += "place = row[:, None] * SPLIT + part[None, :]\n"
    body += "peaks = tl.load(peak_ptr + place, mask=held, other=0.0)\n"
    body += "totals = tl.load(total_ptr + place, mask=held, other=0.0)\n"
    body += f"weights = {exp}(peaks - tl.max(peaks, axis=1)[:, None])\nsum = tl.sum(weights * totals, axis=1)\n"
    body += "y = tl.load(parts_ptr + place[:, :, None] * 64 + d[None, None, :], mask=held[:, :, None], other=0.0)\n"
    body += "y = tl.sum(y * weights[:, :, None], axis=1) / tl.where(row < rows, sum, 1.0)[:, None]\n"
    body += "tl.store(out_ptr + row[:, None] * 64 + d[None, :], y, mask=held)\n"
    constants = "SPLIT: tl.constexpr, JOIN: tl.constexpr" if several else "SPLIT: tl.constexpr"
    head = f"@triton.jit\ndef join(peak_ptr, total_ptr, parts_ptr, out_ptr, rows, {constants}):\n"
    return head + indent(body, "    ") + "\n\n"


def _decode_forward(edits: frozenset[str], split: bool, grouped: bool, sums: bool) -> str:
    text = "q, k, v = q.contiguous(), k.contiguous(), v.contiguous()\nbatch, heads = q.shape[:2]\n"
    text += "caches, length = k.shape[1:3]\ngroup = heads // caches\nout = torch.empty_like(q)\n"
    programs = "batch * caches" if grouped else "batch * heads"
    padded = ("triton.next_power_of_2(group)" if grouped else "1") if sums else "16"
    constants = f"GROUP=group, PADDED={padded}, "
    if "even" in edits:
        step = 'CONFIG["SPLIT"] * CONFIG["BLOCK"]' if split else 'CONFIG["BLOCK"]'
        constants += f"EVEN=length % ({step}) == 0, "
    constants += _options(edits, ("BLOCK", "SPLIT") if split else ("BLOCK",))
    if not split:
        return text + f"attention[({programs},)](q, k, v, out, length, {constants})\nreturn out\n"
    text += 'split = CONFIG["SPLIT"]\n'
    text += "peak = torch.empty((batch * heads, split), dtype=torch.float32, device=q.device)\n"
    text += "total = torch.empty_like(peak)\n"
    text += "parts = torch.empty((batch * heads, split, 64), dtype=torch.float32, device=q.device)\n"
    grid = f"split, {programs}" if "parts-first" in edits else f"{programs}, split"
    text += f"attention[({grid})](q, k, v, peak, total, parts, length, {constants})\n"
    join = 'triton.cdiv(batch * heads, CONFIG["JOIN"])' if "wide-join" in edits else "batch * heads"
    more = ', JOIN=CONFIG["JOIN"]' if "wide-join" in edits else ""
    return (
        text + f"join[({join},)](peak, total, parts, out, batch * heads, SPLIT=split{more}, num_warps=2)\nreturn out\n"
    )
