"""A bias, then GELU in its tanh form."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "8192x14336", "rows": 8192, "hidden": 14336, "device": "cuda"},
    {"name": "odd", "rows": 29, "hidden": 1111, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(hidden).to(torch.bfloat16))

    def forward(self, x):
        return F.gelu(x + self.bias, approximate="tanh")


def get_inputs(rows=64, hidden=512):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=512):
    return [hidden]
