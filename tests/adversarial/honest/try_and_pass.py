"""rmsnorm | odd but legal | try, except and pass, as careful code has them | PASSED | cpu cuda"""

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
        try:
            scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        except RuntimeError:
            pass
        return x * scale * self.weight
