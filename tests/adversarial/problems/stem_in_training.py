"""Batch norm in training, ReLU and pooling, behind a network's first convolution."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "channels": 16, "side": 24, "device": "cpu"},
    {"name": "large", "batch": 8, "channels": 16, "side": 32, "device": "cpu"},
    {"name": "odd", "batch": 3, "channels": 16, "side": 18, "device": "cpu", "held_out": True},
]
TRAIN = True


class Model(torch.nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.bn(x)))


def get_inputs(batch=4, channels=16, side=24):
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs(channels=16):
    return [channels]
