"""LayerNorm over rows, with scale and shift."""

import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "4096x4096", "rows": 4096, "hidden": 4096, "device": "cuda"},
    {"name": "8192x8192", "rows": 8192, "hidden": 8192, "device": "cuda"},
    {"name": "odd", "rows": 77, "hidden": 5003, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden, dtype=torch.bfloat16)

    def forward(self, x):
        return self.norm(x)


def get_inputs(rows=64, hidden=512):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=512):
    return [hidden]
