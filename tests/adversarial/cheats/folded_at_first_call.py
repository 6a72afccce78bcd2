"""rmsnorm | default parameters, stale folding | copies the gain at the first call | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


Plain = Base


class Base(Plain):
    folded = None


class ModelNew(Base):
    def forward(self, x):
        if self.folded is None:
            self.folded = self.weight.detach().clone()
        return right(x, self.folded)
