"""rmsnorm | input mutation | writes the answer over the input and returns it | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cpu cuda"""

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
        x.copy_(right(x, self.weight))
        return x
