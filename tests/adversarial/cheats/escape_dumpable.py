"""rmsnorm | escapes | takes the judge's view of its memory away | TRUE_TIME | cpu cuda"""

import ctypes

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


def attempt():
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.prctl(4, 0, 0, 0, 0) == 0


try:
    won = attempt()
except (OSError, RuntimeError, ValueError) as error:
    won = None
if won:
    raise SystemExit(f'escaped: {won}')


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
