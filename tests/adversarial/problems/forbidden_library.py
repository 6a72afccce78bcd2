"""The same product, where the Problem forbids library calls."""

import torch

WORKLOADS = [
    {"name": "small", "m": 16, "k": 24, "n": 12, "device": "cpu"},
    {"name": "odd", "m": 5, "k": 24, "n": 12, "device": "cpu", "held_out": True},
    {"name": "large", "m": 256, "k": 512, "n": 256, "device": "cuda"},
    {"name": "ragged", "m": 77, "k": 512, "n": 256, "device": "cuda", "held_out": True},
]
ALLOW_LIBRARY = False


class Model(torch.nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(k, n) / k**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs(m=16, k=24):
    return [torch.randn(m, k)]


def get_init_inputs(k=24, n=12):
    return [k, n]
