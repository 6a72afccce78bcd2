"""Sums and sums of squares of rows, equal bits for equal inputs."""

import torch

BITWISE = True
WORKLOADS = [
    {"name": "small", "rows": 128, "columns": 2000, "device": "cpu"},
    {"name": "odd", "rows": 137, "columns": 1111, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 8192, "columns": 2048, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "columns": 1111, "device": "cuda", "held_out": True},
]


def reference(x):
    return x.sum(-1), (x * x).sum(-1)


def get_inputs(rows=128, columns=2000):
    return [torch.randn(rows, columns)]
