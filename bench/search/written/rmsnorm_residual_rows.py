# Add and RMSNorm, a row a program at a time, a few programs a multiprocessor; the weight stays in registers.
import torch
import triton
import triton.language as tl
from torch import nn

TUNABLES = {"WARPS": [8, 4, 16, 32], "WAVES": [4, 1, 2, 8], "STAGES": [2, 1]}
CONFIG = {"WARPS": 8, "WAVES": 4, "STAGES": 2}


@triton.jit
def normed(x_ptr, residual_ptr, weight_ptr, out_ptr, sum_ptr, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    j = tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + j, mask=j < n, other=0.0).to(tl.float32)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row * n + j
        x = tl.load(x_ptr + at, mask=j < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        y = tl.load(residual_ptr + at, mask=j < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        both = (x + y).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + at, both, mask=j < n)
        h = both.to(tl.float32)
        scale = tl.rsqrt(tl.sum(h * h, axis=0) / n + 1e-6)
        tl.store(out_ptr + at, weight * h * scale, mask=j < n)


class ModelNew(nn.Module):
    def __init__(self, hidden, dtype="float32", eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        rows, n = x.shape
        out, sum = torch.empty_like(x), torch.empty_like(x)
        grid = (min(rows, 132 * CONFIG["WAVES"]),)
        block = triton.next_power_of_2(n)
        options = {"BLOCK": block, "STAGES": CONFIG["STAGES"], "num_warps": CONFIG["WARPS"]}
        normed[grid](x, residual, self.weight, out, sum, rows, n, **options)
        return out, sum
