"""rmsnorm | odd but legal | scratch memory kept per shape, written anew in each call | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


Plain = Base


class Base(Plain):
    def __init__(self, hidden, eps=1e-6):
        super().__init__(hidden, eps)
        self.scratch = {}


class ModelNew(Base):
    def forward(self, x):
        scratch = self.scratch.get(x.shape)
        if scratch is None:
            scratch = self.scratch[x.shape] = torch.empty_like(x)
        torch.mul(x, x, out=scratch)
        scale = torch.rsqrt(scratch.mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight
