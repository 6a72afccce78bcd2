"""The text of an attention's kernel: rows of queries, a loop over keys, and parts of a row that are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synthesis.blocks.tile import Pen, dot, walk, whole
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Affine, product
from synthesis.triton.specialise import bounds_of, jit, needed

if TYPE_CHECKING:
    from synthesis.blocks.attention import Attention

NAMES = (
    "o2 m n j row peak total acc parts span score zero larger shift weights scale q k v pair start end product out at"
    " j_q j_k j_v j_n j_q_rest j_k_rest q_rest k_rest q_column k_column v_column q_inside k_inside v_inside row_inside"
)


def write_kernel(block: Attention, name: str, loads: list[Node], sizes: list[str], row: Affine) -> tuple[str, set[str]]:
    """Return the kernel's text, and the pieces that it needs."""
    pointers = [f"{n.name}_ptr" for n in loads] + ["out_ptr", "parts_ptr", "peaks_ptr", "totals_ptr"]
    pen = Pen(block.found.q.dtype == "float32", {*sizes, *block.pairs, *NAMES.split(), *pointers})
    pen.lines += _head(block, row)
    ready = _before_loop(block, pen)
    _loop(block, pen, ready)
    _store(block, pen)
    constants = ["ROWS", "BLOCK", "DEPTH", *(["REST"] if block.pieces else []), "DEPTH_V"]
    constants += ["SPLIT", "EVEN", "INDEX", "TYPE"]
    parameters = ", ".join([*pointers, *sizes, "span", *(f"{c}: tl.constexpr" for c in constants)])
    return "\n".join([_decorator(block, sizes), f"def {name}({parameters}):", *pen.lines]), pen.pieces


def _decorator(block: Attention, sizes: list[str]) -> str:
    """Return the kernel's decorator. Where scores load along the keys, it counts where a program's keys begin."""
    exprs = walk([block.q, block.k, block.v, block.score])
    loads = [e for e in exprs if e.op == "load" and e.data[0] is not block.found.product]
    score = {id(e) for e in walk([block.score])}
    by_key = any(e.full for e in loads if id(e) in score)
    bounds = [block.found.q.shape[-1], block.shape[-1], *bounds_of(exprs), *([block.keys] if by_key else [])]
    found = needed([e.data[1] for e in loads if e.full or id(e) not in score], bounds, [])
    if found is None:
        return "@triton.jit"
    return jit([*sizes, "span"], {*found, "span"} if by_key else found)


def _head(block: Attention, row: Affine) -> list[str]:
    """Return the lines that find this program's rows."""
    lines = ["    zero = tl.zeros([1, 1], tl.float32)", "    pair = tl.program_id(1).to(INDEX)"]
    names = list(block.pairs)
    for number, name in enumerate(names):
        inner = product([block.pairs[o] for o in names[number + 1 :]], block.one)
        text = "pair" if inner.equals(1) else f"pair // {whole(inner)}"
        lines.append(f"    {name} = {text}" + (f" % {whole(block.pairs[name])}" if number else ""))
    rows = block.queries * (block.group or block.one)
    lines.append("    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]")
    lines.append(f"    row_inside = at < {whole(rows)}")
    lines.append(f"    at = tl.minimum(at, {whole(rows)} - 1).to(INDEX)")
    if block.group is not None:
        lines.append("    o2 = at" if block.queries.equals(1) else f"    o2 = at // {whole(block.queries)}")
    if not block.queries.equals(1):
        lines.append("    m = at" if block.group is None else f"    m = at % {whole(block.queries)}")
    lines.append(f"    row = at * 0 + {row.text()}")
    return lines


def _pieces(block: Attention) -> list[tuple[str, str, str]]:
    """Return the pieces of the queries' depth: what their names end with, their first column, and their extent."""
    return [("", "", "DEPTH"), *([("_rest", "DEPTH + ", "REST")] if block.pieces else [])]


def _before_loop(block: Attention, pen: Pen) -> dict[str, dict[int, str]]:
    """Write the queries and the values that the loop starts from. Return the loads of keys and values so far."""
    depth, depth_v = block.found.q.shape[-1], block.shape[-1]
    for end, first, extent in _pieces(block):
        pen.lines += [f"    j_q{end} = {first}tl.arange(0, {extent})[None, :]"]
        pen.lines += [
            f"    q_column{end} = j_q{end} < {whole(depth)}",
            f"    q_inside{end} = row_inside & q_column{end}",
        ]
        masks = (f"q_inside{end}", "row_inside", f"q_column{end}")
        w = pen.writer({"o2", "m"}, "    ", masks=masks, column=f"j_q{end}")
        q = w.operand(block.q, "q_tile")
        pen.lines.append(f"    q{end} = tl.broadcast_to({q}, [ROWS, {extent}])")
    pen.lines += [
        '    peak = tl.full([ROWS, 1], float("-inf"), tl.float32)',
        "    total = tl.zeros([ROWS, 1], tl.float32)",
        "    acc = tl.zeros([ROWS, DEPTH_V], tl.float32)",
        f"    end = tl.minimum(tl.program_id(2) * span + span, {whole(block.keys)})",
    ]
    ready = {}
    tiles = [(f"k{end}", block.k, depth, first, columns) for end, first, columns in _pieces(block)]
    for name, operand, width, first, columns in (*tiles, ("v", block.v, depth_v, "", "DEPTH_V")):
        if name == "v" and block.shared:
            continue
        upright = block.upright and name != "v"
        pen.lines.append(f"    j_{name} = {first}tl.arange(0, {columns})[{':, None' if upright else 'None, :'}]")
        pen.lines.append(f"    {name}_column = j_{name} < {whole(width)}")
        w = pen.writer({"n"}, "    ", masks=("", "", f"{name}_column"), column=f"j_{name}")
        ready[name] = {} if upright else w.before_loop(operand, "BLOCK")
    return ready


def _keys(block: Attention, pen: Pen, ready: dict[str, dict[int, str]]) -> str:
    """Write the products of queries and keys. Return the name of the first keys."""
    names = []
    turned = "{}" if block.upright else "tl.trans({})"
    for end, _, _ in _pieces(block):
        name = f"k{end}"
        pen.lines.append(f"        {name}_inside = key_inside & {name}_column")
        masks = (f"{name}_inside", "key_inside", f"{name}_column")
        w = pen.writer({"n"}, "        ", masks=masks, column=f"j_{name}", ready=ready[name])
        names.append(w.operand(block.k, "k_tile"))
        product = dot(block.found.q.dtype, f"q{end}", turned.format(names[-1]), "product" if end else "")
        pen.lines.append(f"        product = {product}")
    return names[0]


def _keys_inside(where: str) -> list[str]:
    """Return the lines that number the keys of a step, along the rows or the columns of a tile."""
    shape = "[BLOCK, 1]" if where == ":, None" else "[1, BLOCK]"
    return [
        f"        n = (start + tl.arange(0, BLOCK)[{where}]).to(INDEX)",
        f"        key_inside = tl.full({shape}, True, tl.int1) if EVEN else n < end",
    ]


def _loop(block: Attention, pen: Pen, ready: dict[str, dict[int, str]]) -> None:
    """Write the steps over the keys: products, the peak so far, and sums relative to it."""
    pen.lines += [
        "    for start in range(tl.program_id(2) * span, end, BLOCK):",
        *_keys_inside("None, :" if block.upright else ":, None"),
    ]
    k = _keys(block, pen, ready)
    pen.lines += _keys_inside(":, None") if block.upright else []
    pen.lines += [
        "        j_n = (start + tl.arange(0, BLOCK)[None, :]).to(INDEX)",
        "        n_column = tl.full([1, BLOCK], True, tl.int1) if EVEN else j_n < end",
        "        n_inside = row_inside & n_column",
    ]
    masks, given = ("n_inside", "row_inside", "n_column"), {id(block.found.product): "product"}
    score = pen.writer({"o2", "m"}, "        ", masks=masks, column="j_n", given=given).value(block.score)
    pen.lines += [
        f'        score = tl.where(n_column, {score}, float("-inf"))',
        "        larger = tl.maximum(peak, tl.max(score, axis=1, keep_dims=True))",
        '        shift = tl.where(larger == float("-inf"), 0.0, larger)',
        "        weights = tl.exp2((score - shift) * 1.4426950408889634)",
        "        scale = tl.exp2((peak - shift) * 1.4426950408889634)",
        "        total = total * scale + tl.sum(weights, axis=1, keep_dims=True)",
    ]
    if block.shared:
        v = k
    else:
        pen.lines.append("        v_inside = key_inside & v_column")
        masks = ("v_inside", "key_inside", "v_column")
        v = pen.writer({"n"}, "        ", masks=masks, column="j_v", ready=ready["v"]).operand(block.v, "v_tile")
    pen.lines += [
        f"        acc = {dot(block.found.q.dtype, 'weights.to(TYPE)', v, 'acc * scale')}",
        "        peak = larger",
    ]


def _store(block: Attention, pen: Pen) -> None:
    """Write the results, or the parts that a second kernel joins."""
    depth_v = whole(block.shape[-1])
    pen.lines += [
        "    j = tl.arange(0, DEPTH_V)[None, :]",
        f"    inside = row_inside & (j < {depth_v})",
        "    if SPLIT:",
        "        place = row * tl.num_programs(2) + tl.program_id(2)",
        f"        tl.store(parts_ptr + place * {depth_v} + j, acc, mask=inside)",
        "        tl.store(peaks_ptr + place, peak, mask=row_inside)",
        "        tl.store(totals_ptr + place, total, mask=row_inside)",
        "    else:",
        *(["        total = tl.where(total == 0.0, 1.0, total)"] if block.found.safe else []),
        f"        tl.store(out_ptr + row * {depth_v} + j, acc / total, mask=inside)",
    ]


JOIN = '''@triton.jit(do_not_specialize=["parts"])
def join_parts(
    parts_ptr, peaks_ptr, totals_ptr, out_ptr, parts, depth,
    PARTS: tl.constexpr, COLUMNS: tl.constexpr, SAFE: tl.constexpr
):
    """Join the parts of one row, each relative to its own peak."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    peaks = tl.load(peaks_ptr + row * parts + part, mask=part < parts, other=float("-inf"))
    totals = tl.load(totals_ptr + row * parts + part, mask=part < parts, other=0.0)
    values = tl.load(parts_ptr + (row * parts + part) * depth + j, mask=(part < parts) & (j < depth), other=0.0)
    peak = tl.max(peaks, axis=0, keep_dims=True)
    scale = tl.exp2((peaks - tl.where(peak == float("-inf"), 0.0, peak)) * 1.4426950408889634)
    total = tl.sum(totals * scale, axis=0, keep_dims=True)
    if SAFE:
        total = tl.where(total == 0.0, 1.0, total)
    value = tl.sum(values * scale, axis=0, keep_dims=True) / total
    tl.store(out_ptr + row * depth + j, value, mask=j < depth)'''

LAUNCH = '''
def _attend(kernel, out, pairs, rows, keys, depth, depth_v, tensors, sizes, kind, safe, shared=False, pieces=False):
    """Split the keys until there are PROGRAMS programs, as far as there are keys; then join the parts of each row."""
    block, size = CONFIG["KEYS"], out.element_size() * (3 if kind is tl.float32 else 1)  # also two parts of TF32
    whole, whole_v = (max(16, triton.next_power_of_2(d)) for d in (depth, depth_v))
    constants = {"DEPTH": whole, "DEPTH_V": whole_v}
    if pieces:
        constants |= {"DEPTH": whole // 2, "REST": max(16, triton.next_power_of_2(depth - whole // 2))}
        whole = whole // 2 + constants["REST"]
    together = max(16, min(CONFIG["QUERIES"], triton.next_power_of_2(rows)))
    while kind is tl.float32 and together > 16 and together * whole * size > 115000:
        together //= 2
    room = 230000 - (together * whole * size if together >= 64 else 0)  # of shared memory
    bytes_of_key = (whole + (0 if shared else whole_v)) * size
    while block > 16 and block * bytes_of_key > room:
        block //= 2
    programs = pairs * triton.cdiv(rows, together)
    wanted = max(1, min(64, CONFIG["PROGRAMS"] // max(1, programs), triton.cdiv(keys, block)))
    span = max(block, triton.cdiv(triton.cdiv(keys, wanted), block) * block)
    parts = max(1, triton.cdiv(keys, span))
    total, where = out.numel() // depth_v, {"dtype": torch.float32, "device": out.device}
    kept = [out, out, out]
    if parts > 1:
        kept = [torch.empty((total, parts, depth_v), **where)] + [torch.empty((total, parts), **where) for _ in "12"]
    stages = max(1, min(CONFIG["ATTEND_STAGES"], room // (block * bytes_of_key)))
    warps = CONFIG["ATTEND_WARPS"]
    while together * whole_v > 128 * 32 * warps:
        warps *= 2  # 128 registers of a thread for the result, at most
    constants |= {"ROWS": together, "BLOCK": block, "SPLIT": parts > 1, "EVEN": keys % block == 0}
    constants |= {"INDEX": _index(tensors), "TYPE": kind}
    grid = (triton.cdiv(rows, together), pairs, parts)
    kernel[grid](*tensors, out, *kept, *sizes, span, **constants, num_warps=warps, num_stages=stages)
    if parts > 1:
        columns = min(128, whole_v)
        shape = {"PARTS": triton.next_power_of_2(parts), "COLUMNS": columns, "SAFE": safe}
        join_parts[(total, triton.cdiv(depth_v, columns))](*kept, out, parts, depth_v, **shape, num_warps=4)
'''
