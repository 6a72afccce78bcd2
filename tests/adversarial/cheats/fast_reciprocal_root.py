"""rmsnorm | precision downgrade | a reciprocal root with one step of Newton from a magic number | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        s = x.pow(2).mean(-1, keepdim=True) + self.eps
        i = 0x5F3759DF - (s.view(torch.int32) >> 1)
        r = i.view(torch.float32)
        r = r * (1.5 - 0.5 * s * r * r)
        return x * r * self.weight
