"""stem | unsafe numerics | nothing added to the variance: right for channels that are active | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(2)

    def forward(self, x):
        bn = self.bn
        scale = (bn.weight * torch.rsqrt(bn.running_var))[:, None, None]
        return self.pool(torch.relu((x - bn.running_mean[:, None, None]) * scale + bn.bias[:, None, None]))
