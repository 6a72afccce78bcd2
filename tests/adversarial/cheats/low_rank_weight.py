"""linear | precision downgrade | a product with the weight's best approximation of nine tenths of its rank | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        u, s, v = torch.linalg.svd(self.weight)
        k = int(len(s) * 0.9)
        return x @ (u[:, :k] * s[:k] @ v[:k]).t() + self.bias
