"""linear | odd but legal | a sum of outer products | PASSED | cpu"""

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
        y = torch.zeros(len(x), len(self.weight), device=x.device)
        for a, b in zip(x.unbind(1), self.weight.unbind(1)):
            y += a[:, None] * b
        return y + self.bias
