"""A matrix times a number of Python's, which the recipe always makes alike, by keyword and clamped."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "n": 48, "device": "cpu"},
    {"name": "odd", "rows": 17, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 512, "n": 256, "device": "cuda"},
    {"name": "ragged", "rows": 77, "n": 200, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, factor, limits):
        return torch.clamp(x * factor, *limits)


def get_inputs(rows=64, n=48):
    return [torch.randn(rows, n), 3.14, (-5.0, 5.0)]


def get_init_inputs():
    return []
