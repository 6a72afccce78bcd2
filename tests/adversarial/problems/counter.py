"""A module whose answer depends on its state: an exponential average over the calls so far."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 8, "channels": 32, "device": "cpu"},
    {"name": "odd", "rows": 3, "channels": 32, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "channels": 512, "device": "cuda"},
    {"name": "ragged", "rows": 77, "channels": 512, "device": "cuda", "held_out": True},
]
TRAIN = True


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("average", torch.zeros(channels))

    def forward(self, x):
        self.average.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x - self.average


def get_inputs(rows=8, channels=32):
    return [torch.randn(rows, channels) + 1]


def get_init_inputs(channels=32):
    return [channels]
