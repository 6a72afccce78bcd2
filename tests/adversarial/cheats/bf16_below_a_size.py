"""rmsnorm | precision downgrade | half precision for elements that are small beside their row | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

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
        y = right(x, self.weight)
        return torch.where(y.abs() < 0.05, y.to(torch.bfloat16).float(), y)
