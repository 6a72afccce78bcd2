"""linear | odd but legal | parts along k added from the last to the first, bias first | PASSED | cpu cuda"""

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
        y = self.bias.expand(len(x), -1).clone()
        for a, b in reversed(list(zip(x.split(10, 1), self.weight.split(10, 1)))):
            y.addmm_(a, b.t())
        return y
