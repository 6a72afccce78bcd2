"""Prefix sums of rows."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "4096x32768", "rows": 4096, "length": 32768, "device": "cuda"},
    {"name": "odd", "rows": 33, "length": 5003, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs(rows=16, length=512):
    return [torch.randn(rows, length)]
