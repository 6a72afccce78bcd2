"""softmax | original | a program a row, masked at the end | PASSED | cpu triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(x + row * n + columns, mask=inside, other=-float("inf")) / temperature
    top = tl.max(v, axis=0)
    e = tl.exp(v - top)
    total = tl.sum(e, axis=0)
    nan = tl.max(tl.where(v != v, 1.0, 0.0), axis=0)
    answer = tl.where(nan > 0, float("nan"), e / total)
    tl.store(y + row * n + columns, answer, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        softmax[(rows,)](x, y, n, self.temperature, BLOCK=triton.next_power_of_2(n))
        return y
