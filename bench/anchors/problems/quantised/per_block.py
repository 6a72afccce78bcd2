"""Quantise blocks of 128 elements to float8, each by its largest magnitude."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "8192x4096", "tokens": 8192, "hidden": 4096, "device": "cuda"},
    {"name": "odd", "tokens": 33, "hidden": 1152, "device": "cuda", "held_out": True},
]
BLOCK, LARGEST = 128, 448.0


class Model(nn.Module):
    def forward(self, x):
        """x (tokens, hidden) to float8 of that shape, and scales (tokens, hidden / 128)."""
        blocks = x.unflatten(-1, (-1, BLOCK)).to(torch.float32)
        scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-10) / LARGEST
        quantised = (blocks / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
        return quantised.flatten(-2), scale.squeeze(-1)


def get_inputs(tokens=16, hidden=512):
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16)]
