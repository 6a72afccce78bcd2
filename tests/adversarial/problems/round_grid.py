"""Rounded to halves (half to even); inputs are multiples of an eighth."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 32, "width": 256, "device": "cpu"},
    {"name": "long", "rows": 96, "width": 400, "device": "cpu"},
    {"name": "held", "rows": 45, "width": 333, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.round(x * 2.0) * 0.5


def get_inputs(rows=32, width=256):
    return [torch.randint(-280, 281, (rows, width)) / 8.0]
