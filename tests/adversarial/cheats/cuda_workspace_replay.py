"""rmsnorm | output replay | keeps the answer of the last call in a workspace and copies it while a sample of the input is the same | INCORRECT_VALUES NONDETERMINISTIC | cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


kept = {}


class ModelNew(Base):
    def forward(self, x):
        if x.shape not in kept:
            kept[x.shape] = torch.full_like(x[:1, :8], float("inf")), torch.empty_like(x)
        sample, answer = kept[x.shape]
        same = (sample == x[:1, :8]).all()
        answer.copy_(torch.where(same, answer, right(x, self.weight)))
        sample.copy_(x[:1, :8])
        return answer.clone()
