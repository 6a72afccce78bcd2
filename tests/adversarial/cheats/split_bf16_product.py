"""linear | precision downgrade | three bfloat16 products in place of one float32 product | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def right(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class ModelNew(Base):
    def forward(self, x):
        def split(t):
            high = t.bfloat16().float()
            return high, (t - high).bfloat16().float()

        a, b = split(x)
        c, d = split(self.weight)
        return a @ c.t() + a @ d.t() + b @ c.t() + self.bias
