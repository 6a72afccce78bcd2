"""rmsnorm | stale memory | every answer is one page of memory mapped twice | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import mmap

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


file = open("/tmp/twice", "w+b")
file.truncate(1 << 20)


class ModelNew(Base):
    def forward(self, x):
        y = right(x, self.weight)
        block = mmap.mmap(file.fileno(), 1 << 20)
        out = torch.frombuffer(block, dtype=torch.float32)[: y.numel()].view(y.shape)
        return out.copy_(y)
