"""rmsnorm | odd but legal | autotuned over three configurations | PASSED | triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


@triton.autotune([triton.Config({}, num_warps=w) for w in (2, 4, 8)], key=["n"])
@triton.jit
def norm(x, w, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(x + row * n + columns, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / n + eps)
    gain = tl.load(w + columns, mask=inside)
    tl.store(y + row * n + columns, v * scale * gain, mask=inside)


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        norm[(rows,)](x, self.weight, y, n, self.eps, BLOCK=triton.next_power_of_2(n))
        return y
