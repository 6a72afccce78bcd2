"""A convolution, batch norm in evaluation and ReLU: a block of a small vision network."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 2, "channels": 16, "features": 32, "side": 28, "device": "cpu"},
    {"name": "odd", "batch": 3, "channels": 12, "features": 20, "side": 19, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 16, "channels": 32, "features": 64, "side": 56, "device": "cuda"},
    {"name": "ragged", "batch": 3, "channels": 24, "features": 40, "side": 37, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, channels=16, features=32):
        super().__init__()
        self.conv = nn.Conv2d(channels, features, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(features)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


def get_inputs(batch=2, channels=16, side=28):
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs(channels=16, features=32):
    return [channels, features]
