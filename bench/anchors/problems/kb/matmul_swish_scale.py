"""A linear layer, Swish, and a scale."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "128x8192x8192", "rows": 128, "hidden": 8192, "device": "cuda"},
    {"name": "odd", "rows": 33, "hidden": 500, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)

    def forward(self, x):
        x = self.linear(x)
        return x * torch.sigmoid(x) * 2.0


def get_inputs(rows=16, hidden=64):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=64):
    return [hidden]
