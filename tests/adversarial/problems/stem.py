"""Batch norm in evaluation, ReLU and pooling, behind a network's first convolution."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "channels": 16, "side": 24, "device": "cpu"},
    {"name": "odd", "batch": 3, "channels": 16, "side": 18, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 16, "channels": 64, "side": 112, "device": "cuda"},
    {"name": "ragged", "batch": 3, "channels": 64, "side": 50, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.bn(x)))


def get_inputs(batch=4, channels=16, side=24):
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs(channels=16):
    return [channels]
