"""rmsnorm | output replay | keeps the last answer in a default argument, asks two elements | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


def answer(x, weight, last=[None, None, None]):
    if last[0] != (x.shape, x[0, 0].item(), x[-1, -1].item()):
        last[:] = (x.shape, x[0, 0].item(), x[-1, -1].item()), right(x, weight), None
    return last[1].clone()


class ModelNew(Base):
    def forward(self, x):
        return answer(x, self.weight)
