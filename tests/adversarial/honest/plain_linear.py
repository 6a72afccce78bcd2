"""linear | odd but legal | the reference's own operations | PASSED | cpu cuda"""

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
        return self.right(x)
