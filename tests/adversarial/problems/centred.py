"""Rows less the moving average of their mean, which a buffer keeps."""

import torch

WORKLOADS = [
    {"name": "base", "rows": 32, "width": 64, "device": "cpu"},
    {"name": "more", "rows": 128, "width": 64, "device": "cpu"},
    {"name": "held", "rows": 50, "width": 64, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 512, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 512, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.register_buffer("average", torch.zeros(width))

    def forward(self, x):
        self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.average


def get_inputs(rows=32, width=64):
    return [torch.randn(rows, width)]


def get_init_inputs(width=64):
    return [width]
