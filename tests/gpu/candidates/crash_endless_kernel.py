"""A kernel that never ends."""

import torch
import torch.nn as nn
from warpwright_native import load_cuda


def plain(x, residual, weight, eps):
    residual = x + residual
    h = residual.float()
    h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * h.to(x.dtype), residual


SOURCE = r"""
extern "C" __global__ void spin(volatile int* flag) { while (*flag == 0) {} }
"""
module = load_cuda(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x, residual):
        module.kernel("spin")(grid=(1,), block=(1,), args=[torch.zeros(1, dtype=torch.int32, device=x.device)])
        return plain(x, residual, self.weight, self.eps)
