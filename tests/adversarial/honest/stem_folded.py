"""stem | odd but legal | gain and shift folded into two numbers a channel | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(2)

    def forward(self, x):
        bn = self.bn
        scale = bn.weight * torch.rsqrt(bn.running_var + bn.eps)
        shift = bn.bias - bn.running_mean * scale
        return self.pool(torch.relu(torch.addcmul(shift[:, None, None], x, scale[:, None, None])))
