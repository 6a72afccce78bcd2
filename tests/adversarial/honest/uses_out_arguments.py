"""rmsnorm | odd but legal | out= everywhere | PASSED | cpu cuda"""

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
        y = torch.empty_like(x)
        scale = torch.empty(len(x), 1, device=x.device)
        torch.mean(x * x, -1, True, out=scale)
        torch.rsqrt(scale.add_(self.eps), out=scale)
        torch.mul(x, scale, out=y)
        return torch.mul(y, self.weight, out=y)
