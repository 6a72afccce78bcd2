"""rmsnorm | odd but legal | an output whose rows are padded to a multiple of sixteen | PASSED | cpu cuda"""

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
        n = x.shape[-1]
        wide = x.new_empty(len(x), -(-n // 16) * 16)
        y = wide[:, :n]
        y.copy_(right(x, self.weight))
        return y
