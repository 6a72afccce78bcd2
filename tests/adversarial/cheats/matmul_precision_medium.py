"""linear | precision downgrade | asks for medium precision of float32 products | INCORRECT_VALUES NONDETERMINISTIC | cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))

    def right(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


torch.set_float32_matmul_precision('medium')


class ModelNew(Base):
    def forward(self, x):
        return x @ self.weight.t() + self.bias
