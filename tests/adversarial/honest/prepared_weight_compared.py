"""linear | odd but legal | a packed weight, made again when any element differs | PASSED | cpu"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))


class ModelNew(Base):
    def forward(self, x):
        if getattr(self, "seen", None) is None or not torch.equal(self.seen, self.weight):
            self.seen = self.weight.detach().clone()
            self.packed = self.seen.t().contiguous()
        return torch.addmm(self.bias, x, self.packed)
