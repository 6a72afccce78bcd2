"""rmsnorm | odd but legal | each answer in memory of its own that is mapped from an unlinked file | PASSED | cpu"""

import mmap
import tempfile

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
        with tempfile.TemporaryFile() as file:
            file.truncate(max(4, x.numel() * 4))
            block = mmap.mmap(file.fileno(), 0)
        out = torch.frombuffer(block, dtype=torch.float32)[: x.numel()].view(x.shape)
        return out.copy_(right(x, self.weight))
