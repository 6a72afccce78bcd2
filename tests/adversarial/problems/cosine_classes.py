"""Cosine of every row with every class's weight."""

import torch
import torch.nn.functional as F

WORKLOADS = [
    {"name": "base", "rows": 32, "width": 64, "classes": 40, "device": "cpu"},
    {"name": "long", "rows": 128, "width": 64, "classes": 40, "device": "cpu"},
    {"name": "held", "rows": 50, "width": 64, "classes": 40, "device": "cpu", "held_out": True},
    {"name": "large", "rows": 4096, "width": 1024, "classes": 512, "device": "cuda"},
    {"name": "ragged", "rows": 1371, "width": 1024, "classes": 512, "device": "cuda", "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, width=64, classes=40):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(classes, width))

    def forward(self, x):
        return F.linear(F.normalize(x), F.normalize(self.weight))


def get_inputs(rows=32, width=64, classes=40):
    return [torch.randn(rows, width)]


def get_init_inputs(width=64, classes=40):
    return [width, classes]
