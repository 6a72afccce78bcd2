"""Softmax over rows."""

import torch

WORKLOADS = [
    {"name": "short", "rows": 64, "width": 128, "device": "cpu"},
    {"name": "long", "rows": 32, "width": 2048, "device": "cpu"},
    {"name": "held", "rows": 20, "width": 1500, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows=64, width=128):
    return [torch.randn(rows, width) * 3]
