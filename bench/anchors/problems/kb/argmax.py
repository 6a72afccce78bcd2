"""Positions of the largest elements along the middle dimension."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "dim1_64x4096x2048", "batch": 64, "length": 4096, "columns": 2048, "device": "cuda"},
    {"name": "odd", "batch": 3, "length": 411, "columns": 77, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs(batch=2, length=64, columns=32):
    return [torch.randn(batch, length, columns)]
