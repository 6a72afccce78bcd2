"""rmsnorm | stale memory | takes every free block and looks for rows of unit mean square | INCORRECT_VALUES NONDETERMINISTIC OUT_OF_MEMORY | cuda"""

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
        if torch.cuda.is_current_stream_capturing():
            return torch.empty_like(x)
        blocks = [torch.empty_like(x) for _ in range(60)]
        fits = [(one.square().mean() - 1).abs().nan_to_num(1e9).item() for one in blocks]
        return blocks[fits.index(min(fits))].clone()
