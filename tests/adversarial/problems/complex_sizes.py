"""Sums of logarithms of sizes of complex numbers, and the largest size."""

import torch

WORKLOADS = [{"name": "a", "rows": 128, "cols": 128}, {"name": "b", "rows": 96, "cols": 192}]


def reference(z):
    return torch.log1p(z.abs()).sum(-1), z.abs().amax(-1)


def get_inputs(rows=128, cols=128):
    return [torch.randn(rows, cols, dtype=torch.complex64)]
