"""A 3 by 3 convolution, ReLU, and a bias after it."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "32x64x128x128", "batch": 32, "channels": 64, "side": 128, "device": "cuda"},
    {"name": "odd", "batch": 3, "channels": 24, "side": 19, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 2 * channels, 3)
        self.bias = nn.Parameter(torch.randn(2 * channels, 1, 1))

    def forward(self, x):
        return torch.relu(self.conv(x)) + self.bias


def get_inputs(batch=2, channels=8, side=12):
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs(channels=8):
    return [channels]
