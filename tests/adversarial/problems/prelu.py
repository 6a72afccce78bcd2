"""A leaky ReLU with a slope per channel, which training changes."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 4, "channels": 16, "width": 100, "device": "cpu"},
    {"name": "odd", "batch": 3, "channels": 16, "width": 77, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 64, "channels": 64, "width": 4096, "device": "cuda"},
    {"name": "ragged", "batch": 3, "channels": 64, "width": 1003, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = torch.nn.PReLU(channels)

    def forward(self, x):
        return self.act(x)


def get_inputs(batch=4, channels=16, width=100):
    return [torch.randn(batch, channels, width)]


def get_init_inputs(channels=16):
    return [channels]
