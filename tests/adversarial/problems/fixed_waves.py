"""Waves of a grid that the recipe always makes alike, times rows that it draws."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "device": "cpu"},
    {"name": "odd", "rows": 7, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 65536, "device": "cuda"},
    {"name": "ragged", "rows": 1311, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, grid):
        return x * torch.cos(3 * grid) + torch.sin(grid)


def get_inputs(rows=24):
    return [torch.randn(rows, 40), torch.arange(40) / 10]


def get_init_inputs():
    return []
