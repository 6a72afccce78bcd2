"""Scores against class vectors of unit length."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 32, "classes": 40},
    {"name": "b", "rows": 64, "classes": 100},
    {"name": "h", "rows": 17, "classes": 61, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(classes, 64))

    def forward(self, x):
        return x @ torch.nn.functional.normalize(self.weight, dim=-1).t()


def get_inputs(rows=32, classes=40):
    return [torch.randn(rows, 64)]


def get_init_inputs(classes=40):
    return [classes]
