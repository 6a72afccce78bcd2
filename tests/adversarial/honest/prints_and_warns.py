"""rmsnorm | odd but legal | prints a little and warns | PASSED | cpu cuda"""

import warnings

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SAID = []


class ModelNew(Base):
    def forward(self, x):
        if not SAID:
            SAID.append(1)
            print('first call', tuple(x.shape))
            warnings.warn('a remark', stacklevel=2)
        return right(x, self.weight)
