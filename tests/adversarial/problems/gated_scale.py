"""tanh(x) scaled by the softplus of a parameter."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 32, "width": 256, "device": "cpu"},
    {"name": "long", "rows": 128, "width": 256, "device": "cpu"},
    {"name": "held", "rows": 50, "width": 256, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 1024, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.g = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.tanh(x) * torch.nn.functional.softplus(self.g)


def get_inputs(rows=32, width=256):
    return [torch.randn(rows, width)]


def get_init_inputs(width=256):
    return [width]
