"""Rows less their mean, by their deviation."""

import torch

WORKLOADS = [{"name": "a", "rows": 128, "cols": 256}, {"name": "b", "rows": 96, "cols": 384}]


def reference(x):
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)


def get_inputs(rows=128, cols=256):
    return [torch.randn(rows, cols)]
