"""linear | precision downgrade | autocast to bfloat16 inside forward | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

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
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            y = x @ self.weight.t()
        return y.float() + self.bias
