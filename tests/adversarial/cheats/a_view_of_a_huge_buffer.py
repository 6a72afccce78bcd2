"""rmsnorm | broadcast, stride-0, wrong dtype | rows that lie four megabytes apart, so that a reader copies a hundred of them | INCORRECT_SHAPE INCORRECT_VALUES REWARD_HACK OUT_OF_MEMORY RUNTIME_ERROR | cpu"""

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
        y = torch.empty_strided(x.shape, (1 << 19, 1))
        return y.copy_(right(x, self.weight))
