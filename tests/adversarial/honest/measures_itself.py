"""rmsnorm | odd but legal | times two variants at its first call of a shape and keeps the faster one | PASSED | cpu cuda"""

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


BEST = {}
WAYS = {'plain': right, 'library': lambda x, w: nn.functional.rms_norm(x, x.shape[-1:], w, 1e-6)}


class ModelNew(Base):
    def forward(self, x):
        if x.shape not in BEST:
            times = {}
            for name, way in WAYS.items():
                start = time.perf_counter()
                way(x, self.weight)
                times[name] = time.perf_counter() - start
            BEST[x.shape] = min(times, key=times.get)
        return WAYS[BEST[x.shape]](x, self.weight)
