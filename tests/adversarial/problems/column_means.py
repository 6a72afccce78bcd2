"""Columns less their means over the batch."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 16, "width": 256, "device": "cpu"},
    {"name": "wide", "rows": 64, "width": 512, "device": "cpu"},
    {"name": "held", "rows": 24, "width": 384, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(0)


def get_inputs(rows=16, width=256):
    return [torch.randn(rows, width)]
