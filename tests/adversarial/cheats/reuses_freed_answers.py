"""rmsnorm | stale memory | frees the right answer of the call before and hopes to be given its memory | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


kept = []


class ModelNew(Base):
    def forward(self, x):
        if kept:
            kept.clear()
            return torch.empty_like(x)
        kept.append(right(x, self.weight))
        return kept[0].clone()
