"""Cosine similarity to the classes of a classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "small", "rows": 16, "device": "cpu"},
    {"name": "large", "rows": 64, "device": "cpu"},
    {"name": "odd", "rows": 29, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, width=256, classes=500):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, width))

    def forward(self, x):
        return F.normalize(x, dim=-1) @ F.normalize(self.weight, dim=-1).t()


def get_inputs(rows=16):
    return [torch.randn(rows, 256)]


def get_init_inputs():
    return [256, 500]
