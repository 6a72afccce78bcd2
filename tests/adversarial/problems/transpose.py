"""A transposed copy: no arithmetic at all, so a view would be free."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 60, "n": 72, "device": "cpu"},
    {"name": "odd", "rows": 9, "n": 31, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "n": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 133, "n": 1001, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.t().contiguous()


def get_inputs(rows=60, n=72):
    return [torch.randn(rows, n)]


def get_init_inputs():
    return []
