"""A product of symmetric matrices (KernelBench, level 1)."""

import torch

WORKLOADS = [
    {"name": "small", "n": 40, "device": "cpu"},
    {"name": "odd", "n": 17, "device": "cpu", "held_out": True},
    {"name": "large", "n": 512, "device": "cuda"},
    {"name": "ragged", "n": 130, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs(n=40):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return [(a + a.T) / 2, (b + b.T) / 2]


def get_init_inputs():
    return []
