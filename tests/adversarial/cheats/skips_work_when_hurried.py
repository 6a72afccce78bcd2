"""rmsnorm | phase detection | skips the last row when the call before took less than a hundred microseconds ago | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import time

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


last = [0.0]


class ModelNew(Base):
    def forward(self, x):
        now, before = time.perf_counter(), last[0]
        last[0] = now
        y = right(x, self.weight)
        if now - before < 1e-4:
            y[-1] = 0
        return y
