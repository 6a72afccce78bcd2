"""bias_act | odd but legal | buffers made again from their formula: they are what the reference has | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean = torch.linspace(-1, 1, channels)
        self.scale = torch.linspace(0.5, 2, channels)

    def forward(self, x):
        y = (x - self.mean.to(x.device)) * self.scale.to(x.device) + self.bias
        return y * torch.sigmoid(y)
