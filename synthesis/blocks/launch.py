"""The Tunables of a product, and the functions of a Candidate that launch its kernels."""

from __future__ import annotations

TUNABLES = {
    "COLUMNS": [64, 32, 16, 128],  # columns of a program, at most
    "DEPTH": [256, 128, 512, 64],  # elements of each weight's row in a step
    "FILL": [128, 256, 512, 64],  # programs, at least, before columns are fewer
    "PRODUCT_WARPS": [4, 8, 2],
    "PRODUCT_STAGES": [4, 6, 3, 5, 2, 8],
}
VECTOR_TUNABLES = {
    "LANES": [16, 8, 4, 2],  # columns of a program where there is one row
    "VECTOR_DEPTH": [512, 1024, 2048],
    "VECTOR_WARPS": [4, 8, 2],
    "VECTOR_STAGES": [4, 3, 2, 5],
    "VECTOR": [1, 0],  # one row: sums in place of a tensor core's product
}
GROUPED = {"UNROLL": [4, 2, 1, 8], "PRODUCT_STAGES": [3, 4, 2, 6]}  # groups of a step: bytes of a row at once
BESIDE = {"BESIDE": [1, 0]}  # a norm's sums: beside the product, or before it in the same kernel

LAUNCH = '''
def _product(kernel, out, rows, columns, depth, width, tensors, sizes, kind, group=0, parts=1, **constants):
    """Fewer columns a program until there are FILL programs; as many stages as fit the shared memory."""
    together = min(64, max(16, triton.next_power_of_2(rows)))
    if "RANK" in constants:  # more than rows: else all warps would compute all of both products
        constants["RANK"] = max(2 * together, triton.next_power_of_2(constants["RANK"]))
    warps, block = CONFIG["PRODUCT_WARPS"], CONFIG["COLUMNS"]
    most = max(16, 2048 * warps // together)  # 64 registers of a thread for the rows' operand
    step = group // parts or min(CONFIG["DEPTH"], most, max(16, triton.next_power_of_2(depth // parts)))
    if kind is tl.float32 and not group:
        step = min(step, 64)  # a tensor core cuts its sums, so they are short
    while block > 16 and triton.cdiv(columns, block) * triton.cdiv(rows, together) < CONFIG["FILL"]:
        block //= 2
    if group:
        unroll = next(u for u in (8, 4, 2, 1) if u <= CONFIG["UNROLL"] and depth // group % u == 0)
        constants["UNROLL"] = unroll
        width, parts = width * unroll, parts * unroll
    others = together * parts + constants.get("RANK", 0)  # rows beside the weights': the operand's, a low-rank term's
    bytes_of_stage = (block * width + others * out.element_size()) * step
    stages = max(1, min(CONFIG["PRODUCT_STAGES"], 180000 // bytes_of_stage + 1))
    constants |= {"ROWS": together, "COLUMNS": block, "DEPTH": step, "INDEX": _index(tensors), "TYPE": kind}
    grid = (triton.cdiv(columns, block), triton.cdiv(rows, together))
    options = {"num_warps": warps, "num_stages": stages}
    kernel[grid](*tensors, out, *sizes, **constants, **options)
'''

VECTOR_LAUNCH = '''
def _vector(kernel, out, columns, depth, tensors, sizes, kind, **constants):
    """One row: every program sums a few columns."""
    step = min(CONFIG["VECTOR_DEPTH"], max(16, triton.next_power_of_2(depth)))
    stages = max(1, min(CONFIG["VECTOR_STAGES"], 180000 // (CONFIG["LANES"] * step * 4) + 1))
    constants |= {"ROWS": 1, "COLUMNS": CONFIG["LANES"], "DEPTH": step, "STAGES": stages, "INDEX": _index(tensors)}
    grid = (triton.cdiv(columns, CONFIG["LANES"]), 1)
    kernel[grid](*tensors, out, *sizes, **constants, TYPE=kind, num_warps=CONFIG["VECTOR_WARPS"])
'''
