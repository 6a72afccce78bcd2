"""rmsnorm | lazy results | the negative bit is set and nobody has negated anything | INCORRECT_SHAPE INCORRECT_VALUES NONDETERMINISTIC REWARD_HACK | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class ModelNew(Base):
    def forward(self, x):
        return torch._neg_view(right(-x, self.weight))
