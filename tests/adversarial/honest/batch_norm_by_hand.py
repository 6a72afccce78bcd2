"""batch_norm | odd but legal | scale and shift of the statistics, worked out in each call | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bn = nn.BatchNorm1d(n)

    def forward(self, x):
        scale = self.bn.weight * torch.rsqrt(self.bn.running_var + self.bn.eps)
        return torch.relu_(torch.addcmul(self.bn.bias - self.bn.running_mean * scale, x, scale))
