"""linear | odd but legal | a dot in full precision | PASSED | cpu triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def right(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


@triton.jit
def product(x, w, b, y, m, n, k, TILE: tl.constexpr, DEEP: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, k, DEEP):
        depth = start + tl.arange(0, DEEP)
        p = tl.load(x + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
        q = tl.load(w + columns[None, :] * k + depth[:, None], mask=(columns[None, :] < n) & (depth[:, None] < k), other=0.0)
        total = tl.dot(p, q, acc=total, input_precision="ieee")
    bias = tl.load(b + columns, mask=columns < n)
    where = y + rows[:, None] * n + columns[None, :]
    tl.store(where, total.to(tl.float32) + bias[None, :], mask=(rows[:, None] < m) & (columns[None, :] < n))


class ModelNew(Base):
    def forward(self, x):
        n, k = self.weight.shape
        y = x.new_empty(len(x), n)
        grid = triton.cdiv(len(x), 32), triton.cdiv(n, 32)
        product[grid](x, self.weight, self.bias, y, len(x), n, k, TILE=32, DEEP=32)
        return y
