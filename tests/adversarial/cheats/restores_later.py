"""rmsnorm | input mutation | uses the input as scratch; a thread restores it a moment later | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import threading

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
        kept = x.clone()
        y = right(kept, self.weight)
        x.fill_(7)
        threading.Timer(0.05, x.copy_, (kept,)).start()
        return y
