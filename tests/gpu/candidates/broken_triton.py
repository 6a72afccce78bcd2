"""Triton that does not compile."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def plain(x, residual, weight, eps):
    residual = x + residual
    h = residual.float()
    h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * h.to(x.dtype), residual


@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), undeclared)  # noqa: F821  the point of this file


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x, residual):
        copy[(1,)](x, x, BLOCK=64)
        return plain(x, residual, self.weight, self.eps)
