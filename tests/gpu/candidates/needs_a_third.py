"""Eager PyTorch's own call, with a workspace of a third of the device's memory."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden: int, dtype: str = "float32", eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, dtype=getattr(torch, dtype)))
        self.eps = eps
        _, total = torch.cuda.mem_get_info()
        self.workspace = torch.empty(total // 3, dtype=torch.uint8, device="cuda")

    def forward(self, x, residual):
        residual = x + residual
        h = residual.float()
        h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype), residual
