"""Pointwise with a bias and two buffers (as a folded batch norm has them), then SiLU."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 20, "channels": 48, "device": "cpu"},
    {"name": "odd", "rows": 3, "channels": 48, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "channels": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 77, "channels": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.linspace(-1, 1, channels))
        self.register_buffer("scale", torch.linspace(0.5, 2, channels))

    def forward(self, x):
        return torch.nn.functional.silu((x - self.mean) * self.scale + self.bias)


def get_inputs(rows=20, channels=48):
    return [torch.randn(rows, channels)]


def get_init_inputs(channels=48):
    return [channels]
