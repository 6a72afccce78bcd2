"""linear | default parameters, stale folding | prepares the transposed weight once per address: reloading writes in place | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def right(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


kept = {}


class ModelNew(Base):
    def forward(self, x):
        key = self.weight.data_ptr()
        if key not in kept:
            kept[key] = self.weight.detach().t().contiguous()
        return x @ kept[key] + self.bias
