"""A pointwise function that costs fifty times as much as reading its input."""

import torch

WORKLOADS = [
    {"name": "small", "n": 4000, "device": "cpu"},
    {"name": "odd", "n": 1237, "device": "cpu", "held_out": True},
    {"name": "large", "n": 4000000, "device": "cuda"},
    {"name": "ragged", "n": 100003, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.lgamma(x)


def get_inputs(n=4000):
    return [torch.rand(n) * 4 + 3]


def get_init_inputs():
    return []
