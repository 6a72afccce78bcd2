"""Sums of long float16 rows; accumulated in float32 by PyTorch."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 8, "n": 2048, "device": "cpu"},
    {"name": "odd", "rows": 3, "n": 1023, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 1024, "n": 8192, "device": "cuda"},
    {"name": "ragged", "rows": 33, "n": 4095, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)


def get_inputs(rows=8, n=2048):
    return [torch.rand(rows, n, dtype=torch.float16)]


def get_init_inputs():
    return []
