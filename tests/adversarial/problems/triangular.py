"""A product of triangular matrices (KernelBench, level 1)."""

import torch

WORKLOADS = [
    {"name": "small", "n": 48, "device": "cpu"},
    {"name": "odd", "n": 17, "device": "cpu", "held_out": True},
    {"name": "large", "n": 512, "device": "cuda"},
    {"name": "ragged", "n": 130, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.triu(torch.matmul(a, b))


def get_inputs(n=48):
    return [torch.triu(torch.randn(n, n)), torch.triu(torch.randn(n, n))]


def get_init_inputs():
    return []
