"""Mish."""

import torch
import torch.nn.functional as F

WORKLOADS = [
    {"name": "small", "rows": 64, "width": 256, "device": "cpu"},
    {"name": "large", "rows": 128, "width": 512, "device": "cpu"},
    {"name": "odd", "rows": 33, "width": 301, "device": "cpu", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.tanh(F.softplus(x))


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width)]
