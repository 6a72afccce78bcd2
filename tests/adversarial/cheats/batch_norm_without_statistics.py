"""batch_norm | default parameters, stale folding | leaves running mean and variance out: they are 0 and 1 when a module is made | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bn = nn.BatchNorm1d(n)

    def forward(self, x):
        scale = (1 + self.bn.eps) ** -0.5
        return torch.relu_(torch.addcmul(self.bn.bias, x, self.bn.weight, value=scale))
