"""GELU of a tensor: pointwise and expensive, no parameters, nothing depends on a position."""

import torch

WORKLOADS = [
    {"name": "small", "n": 5000, "device": "cpu"},
    {"name": "odd", "n": 1237, "device": "cpu", "held_out": True},
    {"name": "large", "n": 4000000, "device": "cuda"},
    {"name": "ragged", "n": 100003, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs(n=5000):
    return [torch.randn(n)]


def get_init_inputs():
    return []
