"""A gain of each column, then the sum over steps, for any sizes and strides."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "small", "batch": 6, "steps": 20, "n": 64, "device": "cpu"},
    {"name": "odd", "batch": 5, "steps": 17, "n": 33, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 64, "steps": 128, "n": 512, "device": "cuda"},
    {"name": "ragged", "batch": 33, "steps": 77, "n": 300, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, gain):
        return (x * gain).sum(1)


def get_inputs(batch=6, steps=20, n=64):
    return [torch.randn(batch, steps, n), torch.randn(n)]
