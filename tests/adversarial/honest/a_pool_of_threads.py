"""rmsnorm | odd but legal | a pool that outlives the call, with nothing left to do in between | PASSED | cpu"""

import concurrent.futures

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


pool = concurrent.futures.ThreadPoolExecutor(2)


class ModelNew(Base):
    def forward(self, x):
        parts = pool.map(right, x.split(5), [self.weight.detach()] * len(x.split(5)))
        return torch.cat(list(parts))
