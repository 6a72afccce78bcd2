"""Quantise a whole tensor to eight bits, symmetric, and dequantise."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 256},
    {"name": "b", "rows": 96, "width": 768},
    {"name": "h", "rows": 40, "width": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        top = x.abs().amax()
        scale = torch.where(top == 0, torch.ones_like(top), top / 127.0)
        return torch.round(x / scale).clamp(-127, 127).to(torch.int8), scale


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width)]
