"""rmsnorm | odd but legal | sends what it prints into a buffer | PASSED | cpu"""

import io
import sys

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


sys.stdout = io.StringIO()


class ModelNew(Base):
    def forward(self, x):
        print(x.shape)
        return right(x, self.weight)
