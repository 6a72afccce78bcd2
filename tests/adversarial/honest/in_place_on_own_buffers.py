"""rmsnorm | odd but legal | everything in place, on memory of its own | PASSED | cpu cuda"""

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
        y = x.clone()
        y.pow_(2)
        scale = y.mean(-1, keepdim=True).add_(self.eps).rsqrt_()
        y.copy_(x).mul_(scale).mul_(self.weight)
        return y
