"""Eager PyTorch's own call as a Candidate: neither faster nor slower."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps

    def forward(self, x, residual):
        residual = x + residual
        h = residual.float()
        h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype), residual
