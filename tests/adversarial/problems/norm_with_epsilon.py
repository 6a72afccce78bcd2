"""Rows by their size, to which the epsilon of the sum's dtype is added."""

import torch

WORKLOADS = [
    {"name": "small", "rows": 64, "width": 256, "device": "cpu"},
    {"name": "odd", "rows": 40, "width": 250, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "device": "cuda"},
    {"name": "ragged", "rows": 99, "width": 1000, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def forward(self, x, y):
        h = x + y
        return h / (h.norm(dim=-1, keepdim=True) + torch.finfo(h.dtype).eps)


def get_inputs(rows=64, width=256):
    return [torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return []
