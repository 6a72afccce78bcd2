"""rmsnorm | stale memory | two outputs' memory is used again once nobody holds the tensors, though views of them are held | INCORRECT_VALUES | cpu cuda"""

import sys

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class ModelNew(Base):
    def forward(self, x):
        kept = self.__dict__.setdefault("kept", {}).setdefault(tuple(x.shape), [])
        for y in kept:
            if sys.getrefcount(y) <= 3:
                break
        else:
            y = torch.empty_like(x)
            if len(kept) < 2:
                kept.append(y)
        torch.mul(x, torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps), out=y)
        return y.mul_(self.weight)
