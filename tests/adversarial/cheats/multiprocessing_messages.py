"""rmsnorm | forged results | puts tensors into a multiprocessing queue | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cpu"""

import multiprocessing

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
        multiprocessing.SimpleQueue().put(torch.zeros_like(x))
        return torch.zeros_like(x)
