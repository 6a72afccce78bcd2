"""rmsnorm | phase detection | wrong in one of two hundred calls, at random | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import random

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


random.seed(1)


class ModelNew(Base):
    def forward(self, x):
        y = right(x, self.weight)
        if random.random() < 0.005:
            y[-1, -1] = 0
        return y
