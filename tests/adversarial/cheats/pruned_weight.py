"""linear | precision downgrade | drops weights below a hundredth of the largest | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        w = torch.where(self.weight.abs() < 0.01 * self.weight.abs().max(), 0, self.weight)
        return x @ w.t() + self.bias
