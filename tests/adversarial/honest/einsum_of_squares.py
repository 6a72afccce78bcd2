"""rmsnorm | odd but legal | squares by einsum | PASSED | cpu"""

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
        mean = torch.einsum("ij,ij->i", x, x) / x.shape[-1]
        return torch.einsum("ij,i,j->ij", x, torch.rsqrt(mean + self.eps), self.weight)
