"""Causal attention that makes its mask itself."""

import math

import torch

WORKLOADS = [
    {"name": "small", "heads": 2, "n": 32, "device": "cpu"},
    {"name": "odd", "heads": 3, "n": 17, "device": "cpu", "held_out": True},
    {"name": "large", "heads": 16, "n": 256, "device": "cuda"},
    {"name": "ragged", "heads": 5, "n": 200, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        n = q.shape[-2]
        later = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(later, -torch.inf)
        return torch.softmax(scores, -1) @ v


def get_inputs(heads=2, n=32):
    return [torch.randn(1, heads, n, 16) for _ in range(3)]


def get_init_inputs():
    return []
