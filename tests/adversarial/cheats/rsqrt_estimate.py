"""rmsnorm | precision downgrade | the processor's twelve-bit estimate of the root | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import ctypes
from warpwright_native import load_cpp

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


SOURCE = r"""
#include <immintrin.h>
extern "C" float f(float v) { return _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(v))); }
"""
lib = load_cpp(SOURCE)
lib.f.argtypes, lib.f.restype = [ctypes.c_float], ctypes.c_float


class ModelNew(Base):
    def forward(self, x):
        mean = x.pow(2).mean(-1, keepdim=True) + self.eps
        return x * torch.tensor([[lib.f(v)] for v in mean.flatten().tolist()]) * self.weight
