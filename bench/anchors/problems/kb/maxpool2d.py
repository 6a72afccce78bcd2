"""Max pooling with overlapping windows: 4 by 4, stride 1, padding 1."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "k4s1p1_16x64x512x512", "batch": 16, "channels": 64, "side": 512, "device": "cuda"},
    {"name": "odd", "batch": 3, "channels": 5, "side": 37, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size=4, stride=1, padding=1)

    def forward(self, x):
        return self.pool(x)


def get_inputs(batch=2, channels=3, side=16):
    return [torch.randn(batch, channels, side, side)]
