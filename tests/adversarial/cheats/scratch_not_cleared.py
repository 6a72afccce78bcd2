"""rmsnorm | uninitialised shared memory, races | adds to scratch memory that is zero only the first time | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


scratch = {}


class ModelNew(Base):
    def forward(self, x):
        total = scratch.setdefault(len(x), torch.zeros(len(x), 1, device=x.device))
        total += x.pow(2).sum(-1, keepdim=True)
        return x * torch.rsqrt(total / x.shape[-1] + self.eps) * self.weight
