# LayerNorm, a row a program at a time, a few programs a multiprocessor; weight and bias stay in registers.
import torch
import triton
import triton.language as tl
from torch import nn

TUNABLES = {"WARPS": [8, 4, 16, 32], "WAVES": [4, 1, 2, 8], "STAGES": [2, 1]}
CONFIG = {"WARPS": 8, "WAVES": 4, "STAGES": 2}


@triton.jit
def normed(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    j = tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + j, mask=j < n, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + j, mask=j < n, other=0.0).to(tl.float32)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row * n + j
        x = tl.load(x_ptr + at, mask=j < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        mean = tl.sum(x, axis=0) / n
        centred = tl.where(j < n, x - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + 1e-5)
        tl.store(out_ptr + at, centred * scale * weight + bias, mask=j < n)


class ModelNew(nn.Module):
    def __init__(self, hidden, dtype="float32", eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        rows, n = x.shape
        out = torch.empty_like(x)
        grid = (min(rows, 132 * CONFIG["WAVES"]),)
        options = {"BLOCK": triton.next_power_of_2(n), "STAGES": CONFIG["STAGES"], "num_warps": CONFIG["WARPS"]}
        normed[grid](x, self.weight, self.bias, out, rows, n, **options)
        return out
