"""rmsnorm | phase detection | right in the first hundred and twenty calls, memory as it comes later | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


calls = [0]


class ModelNew(Base):
    def forward(self, x):
        calls[0] += 1
        return right(x, self.weight) if calls[0] < 120 else torch.empty_like(x)
