"""rmsnorm | odd but legal | a doubled gain kept beside, compared with the parameter in each call | PASSED | cpu cuda"""

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
    kept = None

    def forward(self, x):
        if self.kept is None or not torch.equal(self.kept[0], self.weight):
            self.kept = self.weight.detach().clone(), self.weight.detach() * 2
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.kept[1] * 0.5
