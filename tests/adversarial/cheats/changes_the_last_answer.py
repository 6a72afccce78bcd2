"""rmsnorm | stale memory | each call writes one element of the answer that it gave before | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


last = []


class ModelNew(Base):
    def forward(self, x):
        y = right(x, self.weight)
        if last:
            last.pop().view(-1)[:1].zero_()
        last.append(y)
        return y
