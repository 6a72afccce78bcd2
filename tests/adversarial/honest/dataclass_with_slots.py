"""rmsnorm | odd but legal | a dataclass with slots holds what forward needs | PASSED | cpu"""

import dataclasses

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


@dataclasses.dataclass(slots=True, frozen=True)
class Plan:
    eps: float

    def run(self, x, weight):
        return right(x, weight, self.eps)


class ModelNew(Base):
    def __init__(self, hidden, eps=1e-6):
        super().__init__(hidden, eps)
        self.plan = Plan(eps)

    def forward(self, x):
        return self.plan.run(x, self.weight)
