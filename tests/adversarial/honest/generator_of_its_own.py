"""rmsnorm | odd but legal | a generator with a fixed seed for a rotation that is undone | PASSED | cpu"""

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
        own = torch.Generator().manual_seed(3)
        order = torch.randperm(x.shape[0], generator=own)
        y = torch.empty_like(x)
        y[order] = right(x[order], self.weight)
        return y
