# Bias and GELU on a grid of tiles and groups of rows: each program loads its piece of the bias once.
import torch
import triton
import triton.language as tl
from torch import nn

TUNABLES = {"BLOCK": [1024, 512, 2048, 4096], "WARPS": [4, 2, 8], "ROWS": [4, 1, 8]}
CONFIG = {"BLOCK": 1024, "WARPS": 4, "ROWS": 4}


@triton.jit
def activated(x_ptr, bias_ptr, out_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bias = tl.load(bias_ptr + j, mask=j < n, other=0.0).to(tl.float32)
    for k in tl.static_range(ROWS):
        row = (tl.program_id(1) * ROWS + k).to(tl.int64)
        inside = (j < n) & (row < rows)
        x = tl.load(x_ptr + row * n + j, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32) + bias
        inner = 1.5957691216057308 * (x + 0.044715 * x * x * x)
        tl.store(out_ptr + row * n + j, x / (1.0 + tl.exp(-inner)), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden, dtype="float32"):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        rows, n = x.shape
        out = torch.empty_like(x)
        grid = (triton.cdiv(n, CONFIG["BLOCK"]), triton.cdiv(rows, CONFIG["ROWS"]))
        activated[grid](
            x, self.bias, out, rows, n, ROWS=CONFIG["ROWS"], BLOCK=CONFIG["BLOCK"], num_warps=CONFIG["WARPS"]
        )
        return out
