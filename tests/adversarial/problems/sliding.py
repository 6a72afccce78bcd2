"""A gated sum along sequences of several lengths, with positions that the module works out."""

import torch

WORKLOADS = [
    {"name": "long", "rows": 16, "steps": 256, "width": 32, "device": "cpu"},
    {"name": "short", "rows": 16, "steps": 64, "width": 32, "device": "cpu"},
    {"name": "odd", "rows": 7, "steps": 99, "width": 32, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 64, "steps": 2048, "width": 128, "device": "cuda"},
    {"name": "usual", "rows": 64, "steps": 512, "width": 128, "device": "cuda"},
    {"name": "ragged", "rows": 5, "steps": 777, "width": 128, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        position = torch.arange(x.shape[1], device=x.device, dtype=x.dtype) / x.shape[1]
        return (x + position[:, None]).relu() * self.gain


def get_inputs(rows=16, steps=256, width=32):
    return [torch.randn(rows, steps, width)]


def get_init_inputs(width=32):
    return [width]
