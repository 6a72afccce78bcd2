"""rmsnorm | stale memory | frees its answer's memory as it returns it | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cpu"""

import ctypes
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
        y = right(x, self.weight)
        alias = torch.from_numpy(np.ctypeslib.as_array((ctypes.c_float * y.numel()).from_address(y.data_ptr()))).view(y.shape)
        del y
        return alias
