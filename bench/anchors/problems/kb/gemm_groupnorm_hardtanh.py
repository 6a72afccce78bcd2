"""A linear layer, GroupNorm over its features, and Hardtanh."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "1024x8192x8192", "rows": 1024, "hidden": 8192, "device": "cuda"},
    {"name": "odd", "rows": 33, "hidden": 496, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        self.norm = nn.GroupNorm(16, hidden)

    def forward(self, x):
        return nn.functional.hardtanh(self.norm(self.linear(x)), -2.0, 2.0)


def get_inputs(rows=16, hidden=64):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=64):
    return [hidden]
