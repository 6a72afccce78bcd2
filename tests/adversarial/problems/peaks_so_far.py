"""The largest value up to each place of a row, and where it was."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 8, "n": 60, "device": "cpu"},
    {"name": "odd", "rows": 3, "n": 37, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 131, "n": 777, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cummax(x, dim=-1)


def get_inputs(rows=8, n=60):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
