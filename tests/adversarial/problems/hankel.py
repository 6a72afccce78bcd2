"""Windows of sixteen steps of a scaled sequence, one step apart: a Hankel matrix a row."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 16, "steps": 300, "device": "cpu"},
    {"name": "more", "rows": 32, "steps": 300, "device": "cpu"},
    {"name": "odd", "rows": 7, "steps": 300, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "steps": 2000, "device": "cuda"},
    {"name": "ragged", "rows": 300, "steps": 2000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(steps))

    def forward(self, x):
        return (x * self.gain).unfold(1, 16, 1).contiguous()


def get_inputs(rows=16, steps=300):
    return [torch.randn(rows, steps)]


def get_init_inputs(steps=300):
    return [steps]
