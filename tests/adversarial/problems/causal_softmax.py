"""Softmax behind a mask that the recipe always makes alike."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 4, "n": 40, "device": "cpu"},
    {"name": "odd", "rows": 2, "n": 17, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 64, "n": 256, "device": "cuda"},
    {"name": "ragged", "rows": 8, "n": 200, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(~mask, -1e9), -1)


def get_inputs(rows=4, n=40):
    return [torch.randn(rows, n, n), torch.ones(n, n, dtype=torch.bool).tril()]


def get_init_inputs():
    return []
