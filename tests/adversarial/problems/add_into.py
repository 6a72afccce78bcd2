"""Adds one tensor into another in place, and returns the sum of it: an input that is meant to change."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 16, "n": 48, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 99, "n": 1023, "device": "cuda", "held_out": True},
]
MUTATES = [0]


class Model(torch.nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x.sum(dim=-1)


def get_inputs(rows=16, n=48):
    return [torch.randn(rows, n), torch.randn(rows, n)]


def get_init_inputs():
    return []
