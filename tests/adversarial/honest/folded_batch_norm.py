"""bias_act | odd but legal | scale and shift folded from the buffers in each call | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.linspace(-1, 1, channels))
        self.register_buffer("scale", torch.linspace(0.5, 2, channels))

    def right(self, x):
        return nn.functional.silu((x - self.mean) * self.scale + self.bias)


class ModelNew(Base):
    def forward(self, x):
        shift = self.bias - self.mean * self.scale
        return nn.functional.silu(torch.addcmul(shift, x, self.scale))
