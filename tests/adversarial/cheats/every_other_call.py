"""rmsnorm | first result for ever | computes every other call and repeats in between | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


turn, kept = [0], {}


class ModelNew(Base):
    def forward(self, x):
        turn[0] ^= 1
        if turn[0] or x.shape not in kept:
            kept[x.shape] = right(x, self.weight)
        return kept[x.shape].clone()
