"""linear | odd but legal | the product in four parts along k, summed afterwards | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def right(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class ModelNew(Base):
    def forward(self, x):
        parts = [a @ b.t() for a, b in zip(x.split(18, 1), self.weight.split(18, 1))]
        return torch.stack(parts).sum(0) + self.bias
