"""A running sum along rows: a scan, where good parallel orders err more than the reference's own."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 8, "n": 500, "device": "cpu"},
    {"name": "odd", "rows": 3, "n": 77, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "n": 4096, "device": "cuda"},
    {"name": "ragged", "rows": 33, "n": 1001, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=-1)


def get_inputs(rows=8, n=500):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
