"""A product with a weight and a bias; sizes that are no multiples of anything."""

import torch

WORKLOADS = [
    {"name": "small", "m": 24, "k": 73, "n": 40, "device": "cpu"},
    {"name": "odd", "m": 9, "k": 73, "n": 40, "device": "cpu", "held_out": True},
    {"name": "large", "m": 1024, "k": 1024, "n": 512, "device": "cuda"},
    {"name": "ragged", "m": 333, "k": 1024, "n": 512, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n, k) / k**0.5)
        self.bias = torch.nn.Parameter(torch.zeros(n))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


def get_inputs(m=24, k=73):
    return [torch.randn(m, k)]


def get_init_inputs(k=73, n=40):
    return [k, n]
