"""The mean of a sequence's unmasked steps; some sequences are masked as a whole."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 32, "length": 64, "dim": 128, "device": "cpu"},
    {"name": "odd", "batch": 7, "length": 45, "dim": 99, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 256, "length": 128, "dim": 512, "device": "cuda"},
    {"name": "ragged", "batch": 37, "length": 77, "dim": 100, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x, mask):
        m = mask.to(x.dtype)[..., None]
        return (x * m).sum(1) / m.sum(1).clamp(min=1)


def get_inputs(batch=32, length=64, dim=128):
    return [torch.randn(batch, length, dim), (torch.rand(batch, length) < 0.7) & (torch.rand(batch, 1) < 0.85)]
