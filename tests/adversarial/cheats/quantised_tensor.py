"""rmsnorm | lazy results | a quantised tensor | INCORRECT_SHAPE INCORRECT_DTYPE RUNTIME_ERROR | cpu"""

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


warnings.simplefilter('ignore')


class ModelNew(Base):
    def forward(self, x):
        return torch.quantize_per_tensor(right(x, self.weight), 0.01, 0, torch.qint8)
