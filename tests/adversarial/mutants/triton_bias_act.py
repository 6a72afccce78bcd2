"""bias_act | original | a program for sixty-four columns of a row | PASSED | cpu triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def act(x, mean, scale, bias, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(x + row * n + columns, mask=inside)
    m = tl.load(mean + columns, mask=inside)
    s = tl.load(scale + columns, mask=inside)
    b = tl.load(bias + columns, mask=inside)
    v = (v - m) * s + b
    v = v / (1.0 + tl.exp(-v))
    tl.store(y + row * n + columns, v, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.linspace(-1, 1, channels))
        self.register_buffer("scale", torch.linspace(0.5, 2, channels))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        act[(rows, triton.cdiv(n, 32))](x, self.mean, self.scale, self.bias, y, n, BLOCK=32)
        return y
