"""rmsnorm | odd but legal | a constructor with keywords and rest arguments, a forward with defaults | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, *args, eps=1e-6, **kwargs):
        super().__init__()
        (hidden,) = args[:1]
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x, *rest, scale=1.0):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * scale
