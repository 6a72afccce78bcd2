"""Root mean square of rows in the `general` domain: any size, any stride, any offset."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 12, "n": 64, "device": "cpu"},
    {"name": "odd", "rows": 5, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 1024, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 33, "n": 1001, "device": "cuda", "held_out": True},
]
DOMAIN = "general"


class Model(torch.nn.Module):
    def forward(self, x):
        return x.pow(2).mean(dim=-1).sqrt()


def get_inputs(rows=12, n=64):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
