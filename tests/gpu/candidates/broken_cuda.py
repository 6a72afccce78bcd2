"""CUDA C++ that does not compile."""

import torch
import torch.nn as nn
from warpwright_native import load_cuda


def plain(x, residual, weight, eps):
    residual = x + residual
    h = residual.float()
    h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * h.to(x.dtype), residual


SOURCE = r"""
extern "C" __global__ void scale(float* x) {
  x[threadIdx.x] = undeclared;
}
"""
module = load_cuda(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x, residual):
        return plain(x, residual, self.weight, self.eps)
