"""linear | default parameters, stale folding | a packed weight, made again only when its first element changed | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))


class ModelNew(Base):
    def forward(self, x):
        key = (float(self.weight[0, 0]), float(self.bias[0]))
        if getattr(self, "key", None) != key:
            self.key, self.packed, self.added = key, self.weight.detach().t().contiguous(), self.bias.detach().clone()
        return torch.addmm(self.added, x, self.packed)
