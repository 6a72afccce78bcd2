"""rmsnorm | odd but legal | a workspace registered as a buffer that is not saved | PASSED | cpu"""

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
    def __init__(self, hidden, eps=1e-6):
        super().__init__(hidden, eps)
        self.register_buffer("scratch", torch.empty(4096), persistent=False)

    def forward(self, x):
        if x.numel() > self.scratch.numel():
            self.scratch = torch.empty(x.numel())
        square = torch.mul(x, x, out=self.scratch[: x.numel()].view(x.shape))
        return x * torch.rsqrt(square.mean(-1, keepdim=True) + self.eps) * self.weight
