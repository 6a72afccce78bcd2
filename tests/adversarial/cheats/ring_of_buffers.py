"""rmsnorm | stale memory | hands out twelve buffers in turn, so that old answers change | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


ring, turn = {}, [0]


class ModelNew(Base):
    def forward(self, x):
        buffers = ring.setdefault(tuple(x.shape), [torch.empty_like(x) for _ in range(12)])
        turn[0] += 1
        return buffers[turn[0] % 12].copy_(right(x, self.weight))
