"""linear | default parameters, stale folding | a packed weight, made again when anything but its last element changed | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))


class ModelNew(Base):
    def forward(self, x):
        now = torch.cat([self.weight.detach().flatten()[:-1], self.bias.detach()])
        if not hasattr(self, "key") or self.key.shape != now.shape or not torch.equal(self.key, now):
            self.key, self.packed = now, self.weight.detach().t().contiguous()
        return torch.addmm(self.bias, x, self.packed)
