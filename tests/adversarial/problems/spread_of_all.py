"""The standard deviation of each row, not corrected: torch adds squares up in a wider type."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 12, "n": 300, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 77, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 131, "n": 777, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.std(dim=-1, unbiased=False)


def get_inputs(rows=12, n=300):
    return [torch.randn(rows, n) * 3 + 2]


def get_init_inputs():
    return []
