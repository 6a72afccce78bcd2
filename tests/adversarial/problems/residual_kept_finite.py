"""A residual in float16 whose overflows become a large number: in float64 there are none."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "width": 256, "device": "cpu"},
    {"name": "odd", "rows": 40, "width": 250, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 99, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        h = x + y
        return torch.where(h.isinf(), h.sign() * 60000, h)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width, dtype=torch.float16) * 40, torch.randn(rows, width, dtype=torch.float16) * 40]


def get_init_inputs():
    return []
