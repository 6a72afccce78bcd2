"""RMSNorm in front of a block, which hands the residual stream on beside it."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 48, "hidden": 256, "device": "cpu"},
    {"name": "large", "rows": 64, "hidden": 1024, "device": "cpu"},
    {"name": "odd", "rows": 7, "hidden": 333, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight, x


def get_inputs(rows=48, hidden=256):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=256):
    return [hidden]
