"""Rotary embedding whose rates are a buffer: of one rate it would hold a one and nothing else."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 2, "length": 32, "heads": 4, "half": 16, "device": "cpu"},
    {"name": "other", "batch": 1, "length": 64, "heads": 2, "half": 32, "device": "cpu"},
    {"name": "odd", "batch": 3, "length": 11, "heads": 3, "half": 10, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 4, "length": 1024, "heads": 16, "half": 64, "device": "cuda"},
    {"name": "ragged", "batch": 1, "length": 333, "heads": 5, "half": 40, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, half):
        super().__init__()
        self.register_buffer("rates", 10000.0 ** (-torch.arange(half) / half), persistent=False)

    def forward(self, x, positions):
        angles = positions[:, :, None].to(x.dtype) * self.rates
        c, s = angles.cos()[:, :, None], angles.sin()[:, :, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * c - b * s, b * c + a * s], -1)


def get_inputs(batch=2, length=32, heads=4, half=16):
    return [torch.randn(batch, length, heads, 2 * half), torch.randint(0, 200, (batch, length))]


def get_init_inputs(half=16):
    return [half]
