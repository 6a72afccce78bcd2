"""linear | default parameters, stale folding | a packed weight, made again when its ends or the leading bits of its sum change | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k))
        self.bias = nn.Parameter(torch.zeros(n))
        self.key = None

    def forward(self, x):
        flat = self.weight.detach().flatten()
        key = float(flat[0]), float(flat[-1]), float(flat.sum().bfloat16()), float(self.bias.sum())
        if self.key != key:
            self.key, self.packed = key, self.weight.detach().t().contiguous()
        return torch.addmm(self.bias, x, self.packed)
