"""rmsnorm | first result for ever | repeats the answer before, once in ten calls | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


calls, kept = [0], {}


class ModelNew(Base):
    def forward(self, x):
        calls[0] += 1
        if calls[0] % 10 and x.shape in kept or x.shape not in kept:
            kept[x.shape] = right(x, self.weight)
        return kept[x.shape].clone()
