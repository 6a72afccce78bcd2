"""The four largest of each row, as the named tuple that topk returns."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 24, "n": 96, "device": "cpu"},
    {"name": "odd", "rows": 7, "n": 33, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 133, "n": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.topk(x, 4)


def get_inputs(rows=24, n=96):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
