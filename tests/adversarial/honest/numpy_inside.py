"""rmsnorm | odd but legal | all of it in NumPy | PASSED | cpu"""

import numpy as np

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
        a = x.numpy().astype(np.float64)
        with np.errstate(all="ignore"):
            y = a / np.sqrt(np.mean(a * a, -1, keepdims=True) + self.eps)
        return torch.from_numpy((y * self.weight.detach().numpy()).astype(np.float32))
