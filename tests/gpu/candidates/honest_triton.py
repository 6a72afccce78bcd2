"""Residual add + RMSNorm in Triton, one program a row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

TUNABLES = {"num_warps": [4, 8, 16]}
CONFIG = {"num_warps": 8}


@triton.jit
def add_rmsnorm(x, residual, weight, out, total, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    at = tl.arange(0, BLOCK)
    inside = at < hidden
    s = tl.load(x + row + at, mask=inside, other=0.0) + tl.load(residual + row + at, mask=inside, other=0.0)
    tl.store(total + row + at, s, mask=inside)
    h = s.to(tl.float32)
    h = h * tl.rsqrt(tl.sum(h * h) / hidden + eps)
    w = tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + row + at, w * h.to(s.dtype), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x, residual):
        out, total = torch.empty_like(x), torch.empty_like(x)
        rows, hidden = x.shape
        block = triton.next_power_of_2(hidden)
        add_rmsnorm[(rows,)](x, residual, self.weight, out, total, hidden, self.eps, BLOCK=block, **CONFIG)
        return out, total
