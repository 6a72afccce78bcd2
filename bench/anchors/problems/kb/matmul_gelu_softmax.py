"""A linear layer, GELU, and softmax over its features, bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKLOADS = [
    {"name": "1024x8192x8192_bf16", "rows": 1024, "hidden": 8192, "device": "cuda"},
    {"name": "odd", "rows": 33, "hidden": 500, "device": "cuda", "held_out": True},
]


class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden, dtype=torch.bfloat16)

    def forward(self, x):
        return F.softmax(F.gelu(self.linear(x)), dim=1)


def get_inputs(rows=16, hidden=64):
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs(hidden=64):
    return [hidden]
