"""rmsnorm | baseline sabotage | asks for every core, and two threads | TRUE_TIME | cpu"""

import os

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
if len(os.sched_getaffinity(0)) > 1:
    raise SystemExit('got another core')
torch.set_num_threads(2)


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
