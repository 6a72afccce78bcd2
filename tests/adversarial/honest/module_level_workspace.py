"""rmsnorm | odd but legal | scratch memory in a dictionary of the module, keyed by shape and device | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SCRATCH = {}


class ModelNew(Base):
    def forward(self, x):
        key = x.shape, x.device
        if key not in SCRATCH:
            SCRATCH[key] = torch.empty(len(x), 1, device=x.device)
        scale = torch.sum(x * x, -1, keepdim=True, out=SCRATCH[key])
        return x * scale.div_(x.shape[-1]).add_(self.eps).rsqrt_() * self.weight
