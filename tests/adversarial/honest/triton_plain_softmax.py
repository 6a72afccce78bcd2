"""softmax | odd but legal | a program a row | PASSED | cpu triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Base(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def right(self, x):
        return torch.softmax(x / self.temperature, dim=-1)


@triton.jit
def softmax(x, y, n, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(x + row * n + columns, mask=inside, other=-float("inf")) / temperature
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(y + row * n + columns, e / tl.sum(e, axis=0), mask=inside)


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        softmax[(rows,)](x, y, n, self.temperature, BLOCK=triton.next_power_of_2(n))
        return y
