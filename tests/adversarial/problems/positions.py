"""A term of a table for every position; positions are always 0, 1, 2, ... in the recipe."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 8, "n": 40, "device": "cpu"},
    {"name": "odd", "rows": 3, "n": 17, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "n": 256, "device": "cuda"},
    {"name": "ragged", "rows": 77, "n": 200, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, most=512, width=32):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(most, width))

    def forward(self, x, positions):
        return x + self.table[positions]


def get_inputs(rows=8, n=40):
    return [torch.randn(rows, n, 32), torch.arange(n)]


def get_init_inputs():
    return [512, 32]
