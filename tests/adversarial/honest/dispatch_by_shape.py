"""rmsnorm | odd but legal | two ways, chosen by width | PASSED | cpu cuda"""

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
        if x.shape[-1] % 8 == 0:
            scale = torch.rsqrt(x.view(len(x), -1, 8).pow(2).sum(-1).sum(-1, keepdim=True) / x.shape[-1] + self.eps)
            return x * scale * self.weight
        return right(x, self.weight)
