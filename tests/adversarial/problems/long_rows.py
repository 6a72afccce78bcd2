"""Rows so long that the order of additions shows."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 16, "n": 8192, "device": "cpu"},
    {"name": "odd", "rows": 3, "n": 5120, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 1024, "n": 8192, "device": "cuda"},
    {"name": "ragged", "rows": 33, "n": 5001, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (x.shape[-1],))


def get_inputs(rows=16, n=8192):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
