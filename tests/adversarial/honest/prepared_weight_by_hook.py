"""linear | odd but legal | a packed weight, made again whenever somebody copies into the parameter | PASSED | cpu cuda"""

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
    def __init__(self, k, n):
        super().__init__(k, n)
        self.packed, self.seen = None, -1

    def refresh(self):
        if self.seen != self.weight._version + self.bias._version:
            self.seen = self.weight._version + self.bias._version
            self.packed = torch.cat((self.weight.detach(), self.bias.detach()[:, None]), 1)

    def forward(self, x):
        self.refresh()
        return x @ self.packed[:, :-1].t() + self.packed[:, -1]
