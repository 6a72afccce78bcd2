"""The variance of each column: a statistic along the first axis."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "width": 96, "device": "cpu"},
    {"name": "wide", "rows": 100, "width": 256, "device": "cpu"},
    {"name": "odd", "rows": 77, "width": 130, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 2048, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 777, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x):
        return x.var(0, correction=0)


def get_inputs(rows=64, width=96):
    return [torch.randn(rows, width)]
