"""linear | precision downgrade | rounds both factors to ten bits, as TF32 does | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        def short(t):
            return ((t.view(torch.int32) + 4096) & -8192).view(torch.float32)

        return short(x.contiguous()) @ short(self.weight.data).t() + self.bias
