"""A module with state: each call subtracts a running mean, then moves it. The buffer is an output, too."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 16, "channels": 32, "device": "cpu"},
    {"name": "odd", "rows": 5, "channels": 32, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "channels": 512, "device": "cuda"},
    {"name": "ragged", "rows": 77, "channels": 512, "device": "cuda", "held_out": True},
]
TRAIN = True


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - x.mean(0)


def get_inputs(rows=16, channels=32):
    return [torch.randn(rows, channels) + 1]


def get_init_inputs(channels=32):
    return [channels]
