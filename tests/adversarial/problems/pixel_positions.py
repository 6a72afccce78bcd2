"""Add a position to every pixel: sines of its row in half of the channels, cosines of its column in the others."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 2, "height": 24, "width": 40, "device": "cpu"},
    {"name": "large", "batch": 4, "height": 48, "width": 80, "device": "cpu"},
    {"name": "odd", "batch": 3, "height": 30, "width": 37, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        _, channels, height, width = x.shape
        half = channels // 2
        rates = 100.0 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
        down = torch.sin(rates[:, None] * torch.arange(height, device=x.device))[:, :, None]
        along = torch.cos(rates[:, None] * torch.arange(width, device=x.device))[:, None, :]
        table = torch.cat([down.expand(half, height, width), along.expand(half, height, width)])
        return x + self.gain[:, None, None] * table


def get_inputs(batch=2, height=24, width=40):
    return [torch.randn(batch, 32, height, width)]


def get_init_inputs():
    return [32]
