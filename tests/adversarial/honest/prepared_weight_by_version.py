"""linear | odd but legal | a transposed weight kept, and made again when the version counter moved | PASSED | cpu cuda"""

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
    prepared = None

    def forward(self, x):
        stamp = self.weight._version, self.weight.data_ptr()
        if self.prepared is None or self.prepared[0] != stamp:
            self.prepared = stamp, self.weight.detach().t().contiguous()
        return torch.addmm(self.bias, x, self.prepared[1])
