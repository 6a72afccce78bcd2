"""Rotary embedding at positions that are given."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "batch": 2, "length": 64, "heads": 8, "dim": 64, "device": "cpu"},
    {"name": "odd", "batch": 1, "length": 71, "heads": 3, "dim": 48, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 4, "length": 1024, "heads": 16, "dim": 128, "device": "cuda"},
    {"name": "ragged", "batch": 1, "length": 333, "heads": 5, "dim": 96, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
        angles = positions.to(x.dtype)[:, None] * rates
        c, s = angles.cos()[None, :, None, :], angles.sin()[None, :, None, :]
        a, b = x[..., :half], x[..., half : 2 * half]
        return torch.cat([a * c - b * s, b * c + a * s], -1)


def get_inputs(batch=2, length=64, heads=8, dim=64):
    assert dim % 2 == 0
    return [torch.randn(batch, length, heads, dim), torch.randint(0, 400, (length,))]
