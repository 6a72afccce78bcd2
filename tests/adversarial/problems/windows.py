"""Sums over windows of sixteen steps; the last one is filled up with zeros."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 16, "steps": 300, "device": "cpu"},
    {"name": "long", "rows": 16, "steps": 2000, "device": "cpu"},
    {"name": "held", "rows": 16, "steps": 1000, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "steps": 8000, "device": "cuda"},
    {"name": "ragged", "rows": 300, "steps": 5000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        x = torch.nn.functional.pad(x, (0, -x.shape[1] % 16))
        return x.view(x.shape[0], -1, 16).sum(-1)


def get_inputs(rows=16, steps=300):
    return [torch.randn(rows, steps)]
