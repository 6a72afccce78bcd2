"""rmsnorm | escape from the window | copies on a raw non-blocking stream, which no event of torch's sees | TRUE_TIME INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cuda"""

import ctypes

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


driver = ctypes.CDLL("libcuda.so.1")

raw = []


class ModelNew(Base):
    def forward(self, x):
        if not raw:
            torch.cuda.synchronize()
            made = ctypes.c_void_p()
            driver.cuStreamCreate(ctypes.byref(made), 1)  # CU_STREAM_NON_BLOCKING
            raw.append(made)
        y, answer = torch.empty_like(x), right(x, self.weight)
        size = ctypes.c_size_t(x.numel() * 4)
        pointers = ctypes.c_uint64(y.data_ptr()), ctypes.c_uint64(answer.data_ptr())
        driver.cuMemcpyDtoDAsync_v2(*pointers, size, raw[0])
        self.kept = answer
        return y
