"""Attention over heads, any strides."""

import torch

DOMAIN = "general"
WORKLOADS = [
    {"name": "a", "heads": 4, "tokens": 32, "dim": 32},
    {"name": "b", "heads": 2, "tokens": 64, "dim": 32},
]


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def get_inputs(heads=4, tokens=32, dim=32):
    return [torch.randn(heads, tokens, dim) for _ in range(3)]
