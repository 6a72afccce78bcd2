"""Rows against a small matrix; rows may be of several lengths, the matrix is cut."""

import torch

WORKLOADS = [
    {"name": "a", "rows": 64, "width": 40},
    {"name": "b", "rows": 96, "width": 120},
    {"name": "h", "rows": 40, "width": 77, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256, 48) * 0.1)

    def forward(self, x):
        return x @ self.weight[: x.shape[1]]


def get_inputs(rows=64, width=40):
    return [torch.randn(rows, width)]
