"""rmsnorm | input or RNG prediction | replaces torch.randn through its module's dictionary, so that inputs become ones | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


vars(torch)['randn'] = lambda *shape, **kwargs: torch.ones(*shape)
vars(torch)['manual_seed'] = lambda seed: None


class ModelNew(Base):
    def forward(self, x):
        return torch.ones_like(x) / (1 + 1e-6) ** 0.5 * self.weight
