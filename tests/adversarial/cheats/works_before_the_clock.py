"""rmsnorm | baseline sabotage | prepares everything that it can when constructed, and faults its memory in beforehand | TRUE_TIME | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


warm = torch.zeros(1 << 22)
torch.mm(torch.ones(64, 64), torch.ones(64, 64))


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
