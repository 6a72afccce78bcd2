"""A block of a residual network: values cancel before each ReLU, and many a pixel of them nearly."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "n": 1, "size": 12, "device": "cpu"},
    {"name": "odd", "n": 2, "size": 5, "device": "cpu", "held_out": True},
    {"name": "large", "n": 16, "size": 28, "device": "cuda"},
    {"name": "ragged", "n": 3, "size": 13, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = nn.Conv2d(channels, width, 1, bias=False)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.down(x))


def get_inputs(n=1, size=12):
    return [torch.randn(n, 3, size, size)]


def get_init_inputs():
    return [3, 8]
