"""linear | odd but legal | the same parameter under two names | PASSED | cpu"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))


class ModelNew(Base):
    def __init__(self, k, n):
        super().__init__(k, n)
        self.again = self.weight

    def forward(self, x):
        return torch.nn.functional.linear(x, self.again, self.bias)
